"use strict";
const search = document.getElementById("search");
const grade = document.getElementById("grade");
const area = document.getElementById("area");
const count = document.getElementById("count");
const rows = Array.from(document.querySelectorAll("#matrix tbody tr"), (row) => ({
  row,
  text: row.textContent.toLowerCase(),
  grade: row.dataset.grade,
  area: row.dataset.area,
}));
function show() {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  for (const entry of rows) {
    const fits =
      words.every((word) => entry.text.includes(word)) &&
      (!grade.value || entry.grade === grade.value) &&
      (!area.value || entry.area === area.value);
    entry.row.hidden = !fits;
    shown += fits ? 1 : 0;
  }
  count.textContent = `${shown} of ${rows.length} rows`;
}
for (const input of [search, grade, area]) input.addEventListener("input", show);
document.forms[0].addEventListener("submit", (event) => event.preventDefault());
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && event.target === document.body) {
    event.preventDefault();
    search.focus();
  } else if (event.key === "Escape") {
    search.value = "";
    show();
  }
});
show();
