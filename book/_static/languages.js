// The button that copies code says its words in the language of the page; its own script knows few languages.
"use strict";

(() => {
  if (document.documentElement.lang === "en") return;
  const words = { Copy: courseWords.copy, "Copied!": courseWords.copied };
  const say = (button) => {
    const word = words[button.dataset.tooltip];
    if (word) button.dataset.tooltip = word;
  };
  const attributeFilter = ["data-tooltip"];
  new MutationObserver((changes) => {
    for (const { target } of changes) {
      for (const button of target.querySelectorAll("button.copybtn")) say(button);
      if (target.matches("button.copybtn")) say(target);
    }
  }).observe(document.querySelector("article"), { attributeFilter, attributes: true, childList: true, subtree: true });
  document.querySelectorAll("button.copybtn").forEach(say);
})();
