"use strict";
// The front page: search and filters. Nothing is loaded, nothing is kept.
const search = document.getElementById("search");
function front() {
  const grade = document.getElementById("grade");
  const area = document.getElementById("area");
  const count = document.getElementById("count");
  const none = document.getElementById("none");
  const rows = Array.from(document.querySelectorAll("#matrix tbody tr"), (row) => ({
    row,
    link: row.querySelector("a"),
    text: row.textContent.toLowerCase(),
    grade: row.dataset.grade,
    area: row.dataset.area,
  }));
  const shown = () => rows.filter((entry) => !entry.row.hidden);
  function show() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let fitting = 0;
    for (const entry of rows) {
      const fits =
        words.every((word) => entry.text.includes(word)) &&
        (!grade.value || entry.grade === grade.value) &&
        (!area.value || entry.area === area.value);
      if (entry.row.hidden === fits) entry.row.hidden = !fits;
      fitting += fits ? 1 : 0;
    }
    none.hidden = fitting > 0;
    count.textContent = `${fitting} of ${rows.length} rows`;
  }
  for (const input of [search, grade, area]) input.addEventListener("input", show);
  document.forms[0].addEventListener("submit", (event) => {
    event.preventDefault();
    const first = shown()[0];
    if (first) location.href = first.link.href;
  });
  document.addEventListener("keydown", (event) => {
    const typing = event.target.matches("input, select");
    if (event.key === "/" && !typing) {
      event.preventDefault();
      search.focus();
    } else if (event.key === "Escape") {
      search.value = "";
      show();
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      if (event.target.matches("select")) return;
      const list = shown();
      const at = list.findIndex((entry) => entry.link === document.activeElement);
      if (at < 0 && event.target !== search) return;
      event.preventDefault();
      const next = at + (event.key === "ArrowDown" ? 1 : -1);
      if (next < 0) search.focus();
      else if (list[next]) list[next].link.focus();
    }
  });
  show();
}
// The page of a row: the arrows lead to the rows beside it, u to all.
function row() {
  const keys = { ArrowLeft: "prev", ArrowRight: "next", u: "up" };
  document.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey || !(event.key in keys)) return;
    const link = document.querySelector(`a[rel=${keys[event.key]}]`);
    if (link) location.href = link.href;
  });
}
if (search) front();
else row();
