// Narrows the list to what is typed and to the verdicts that are ticked; without scripts everything shows.
const form = document.querySelector("form");
const rules = [...document.querySelectorAll("details[data-verdict]")];
const count = document.querySelector("#shown");
function narrow() {
  const words = form.text.value.toLowerCase().split(/\s+/).filter(Boolean);
  const verdicts = new Set([...form.querySelectorAll("input[type=checkbox]:checked")].map((box) => box.value));
  let shown = 0;
  for (const rule of rules) {
    const text = rule.textContent.toLowerCase();
    rule.hidden = !verdicts.has(rule.dataset.verdict) || !words.every((word) => text.includes(word));
    shown += rule.hidden ? 0 : 1;
  }
  count.textContent = `${shown} of ${rules.length}`;
}
form.hidden = false;
form.addEventListener("input", narrow);
form.addEventListener("submit", (event) => event.preventDefault());
narrow();
