// Marks in the contents and on the concept map what this browser's reader has read to the end and answered.
"use strict";

(() => {
  const root = new URL(document.documentElement.dataset.content_root, location.href);
  const pageAt = (address) => address.slice(root.href.length).replace(/\.html.*$/, "");
  const here = pageAt(location.href);
  const pageOf = (link) => (link.getAttribute("href") === "#" ? here : pageAt(link.href));
  const isChapter = () => document.querySelector("article .course-question");
  const quizzes = [...document.querySelectorAll("fieldset.course-quiz")].map((quiz) => quiz.id.replace("quiz-", ""));

  const words = courseWords.progress;
  const filled = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => values[name]);

  const said = ({ read, answered, all }) =>
    [read ? words.read : "", all ? filled(words.answered, { answered, all }) : ""].filter(Boolean).join(", ");

  const markContents = (pages) => {
    document.querySelectorAll(".course-read-mark").forEach((mark) => mark.remove());
    for (const link of document.querySelectorAll("nav.bd-links a.reference.internal")) {
      const entry = pages[pageOf(link)];
      if (!entry || !(entry.read || entry.answered)) continue;
      const mark = document.createElement("span");
      const shown = document.createElement("span");
      const spoken = document.createElement("span");
      mark.className = "course-read-mark";
      shown.setAttribute("aria-hidden", "true");
      shown.textContent = `${entry.read ? "✓" : ""} ${entry.all ? `${entry.answered}/${entry.all}` : ""}`.trim();
      mark.title = said(entry);
      spoken.className = "visually-hidden";
      spoken.textContent = ` (${said(entry)})`;
      mark.append(shown, spoken);
      link.append(mark);
    }
  };

  const markMap = (pages) => {
    const box = document.querySelector(".course-progress");
    if (!box) return;
    document.querySelectorAll(".course-map-mark").forEach((mark) => mark.remove());
    const items = [...document.querySelectorAll("ul.course-map > li")];
    let read = 0;
    let answered = 0;
    for (const item of items) {
      const entry = pages[pageOf(item.querySelector("a"))];
      if (!entry || !(entry.read || entry.answered)) continue;
      read += entry.read ? 1 : 0;
      answered += entry.answered;
      const mark = document.createElement("strong");
      mark.className = "course-map-mark";
      mark.textContent = ` ${filled(words.you, { said: said(entry) })}`;
      item.querySelector("p").append(mark);
    }
    const kept = courseStore.load();
    const predicted = Object.keys(kept.predictions).length;
    box.hidden = false;
    box.querySelector("button").hidden = !(read || answered || predicted);
    box.querySelector("p").textContent =
      read || answered || predicted
        ? filled(words.some, { read, all: items.length, predicted, answered })
        : words.nothing;
  };

  const show = () => {
    const pages = courseStore.load().pages;
    markContents(pages);
    markMap(pages);
  };

  const note = (change) => {
    if (!isChapter()) return;
    const kept = courseStore.load();
    const answered = quizzes.filter((name) => name in kept.quizzes).length;
    courseStore.put("pages", here, { read: 0, ...kept.pages[here], ...change, answered, all: quizzes.length });
    show();
  };

  document.addEventListener("course-quiz-answered", () => note({}));

  const article = document.querySelector("article.bd-article");
  if (article && isChapter()) {
    const end = document.createElement("div");
    article.append(end);
    new IntersectionObserver(([seen], observer) => {
      if (!seen.isIntersecting) return;
      observer.disconnect();
      note({ read: Date.now() });
    }).observe(end);
  }

  document.querySelector(".course-progress button")?.addEventListener("click", () => {
    if (!confirm(words.sure)) return;
    courseStore.erase();
    show();
  });

  show();
})();
