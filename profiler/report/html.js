"use strict";
for (const table of document.querySelectorAll("table")) {
  const heads = [...table.querySelectorAll("th")];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.textContent = head.textContent;
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") === "descending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const body = table.tBodies[0];
      const value = (row) => row.cells[column].textContent;
      const number = (row) => parseFloat(value(row));
      const rows = [...body.rows];
      const numbers = rows.every((row) => value(row) === "" || !isNaN(number(row)));
      rows.sort((a, b) => numbers ? (number(a) || 0) - (number(b) || 0) : value(a).localeCompare(value(b)));
      if (!up) rows.reverse();
      body.append(...rows);
    });
  });
}
const theme = document.createElement("button");
theme.id = "theme";
const dark = () => (document.documentElement.dataset.theme ||
                    (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
const show = () => { theme.textContent = dark() ? "Light" : "Dark"; };
theme.addEventListener("click", () => {
  document.documentElement.dataset.theme = dark() ? "light" : "dark";
  show();
});
show();
document.querySelector("header").prepend(theme);
