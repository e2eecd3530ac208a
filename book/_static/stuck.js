// Shows the entries of the "stuck" page that fit a pasted error message. Without this script all of them stay visible.
"use strict";

(() => {
  const box = document.getElementById("stuck-search");
  if (!box) return;
  const said = courseWords.stuck;
  const words = (text) => new Set((text.toLowerCase().match(/[\p{L}\p{N}_]{3,}/gu) || []));
  const share = (some, all) => (some.size ? [...some].filter((word) => all.has(word)).length / some.size : 0);
  const entries = [...document.querySelectorAll("main section > section")]
    .filter((section) => section.querySelector(":scope > h3"))
    .map((section) => ({
      section,
      group: section.parentElement,
      title: words(section.querySelector("h3").textContent.replace("#", "")),
      all: words(section.textContent),
    }));
  const field = box.querySelector("textarea");
  const found = box.querySelector("[role=status]");

  // A message on the page fits if the pasted text holds most of its words, or the other way round.
  const fits = (entry, typed) => share(entry.title, typed) >= 0.7 || share(typed, entry.all) >= 0.7;

  const show = () => {
    const typed = words(field.value);
    let count = 0;
    for (const entry of entries) {
      const shown = typed.size === 0 || fits(entry, typed);
      entry.section.hidden = !shown;
      if (shown) count += 1;
    }
    for (const group of new Set(entries.map((entry) => entry.group))) {
      group.hidden = entries.every((entry) => entry.group !== group || entry.section.hidden);
    }
    if (typed.size === 0) found.textContent = "";
    else if (count) found.textContent = said.some.replace("{count}", count).replace("{all}", entries.length);
    else found.textContent = said.nothing;
  };

  box.hidden = false;
  field.addEventListener("input", show);
})();
