// The page works without this script: the server adds up the rubric if the points are left empty.
window.MathJax = {
  // An answer may hold formulas, and no command that loads code, defines macros or styles the page.
  tex: { inlineMath: [["$", "$"], ["\\(", "\\)"]], packages: { "[-]": ["autoload", "require", "newcommand"] } },
  startup: { pageReady: () => window.MathJax.startup.defaultPageReady().then(letScroll) },
  options: { enableMenu: false, ignoreHtmlClass: "all", processHtmlClass: "answer" },
};
document.body.classList.add("all");

// What is wider than its place can be scrolled with the keyboard.
function letScroll() {
  for (const box of document.querySelectorAll("pre, mjx-container")) {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
  }
}
letScroll();
addEventListener("resize", letScroll);

const form = document.getElementById("mark");
if (form) {
  const points = document.getElementById("points");
  const boxes = [...form.querySelectorAll("#rubric input")];
  for (const box of boxes) {
    box.addEventListener("change", () => {
      const sum = boxes.filter(({ checked }) => checked).reduce(
        (total, { dataset }) => total + Number(dataset.points), Number(points.dataset.start));
      points.value = String(Math.max(0, Math.min(Number(points.dataset.most), Math.round(sum * 1e4) / 1e4)));
    });
  }
  form.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      form.querySelector("button[value=save]").click();
    } else if (event.target.type === "checkbox" && /^[1-9]$/.test(event.key) && boxes[event.key - 1]) {
      boxes[event.key - 1].focus();
      boxes[event.key - 1].click();
    }
  });
  if (matchMedia("(min-width: 50rem)").matches) (boxes[0] ?? points).focus({ preventScroll: true });
}
