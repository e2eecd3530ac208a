// The search of the site. Sphinx finds pages; here a result leads to the place in the page, words for the same thing
// are found as well, and excerpts are made of a page's article, without the buttons and lists around it.
(() => {
  const ENDS = /<\/(dd|dt|figcaption|h\d|label|legend|li|p|pre|summary|td|th)>/g;
  const { htmlToText: textOf, makeSearchSummary: summaryOf } = Search;

  const articleOf = (html) => new DOMParser().parseFromString(html, "text/html").querySelector("article.bd-article");

  Search.htmlToText = (html, anchor) => {
    const article = articleOf(html);
    article.querySelectorAll(".course-notebook, .course-languages").forEach((line) => line.remove());
    article.setAttribute("role", "main");
    // A term of the glossary is shown with its meaning.
    const term = anchor && article.querySelector(`dl.glossary > dt[id="${anchor.slice(1).replaceAll("\\", "")}"]`);
    if (term) term.append(" ", ...term.nextElementSibling.cloneNode(true).childNodes);
    const spaced = article.outerHTML.replace(ENDS, " $&"); // or the words on both sides become one
    const text = textOf(spaced, anchor).trim() || textOf(spaced, ""); // some anchors are empty
    return text.replace(/\\[()[\]]/g, ""); // the marks around formulas
  };

  // The section that has the most of the words in its own text, them together if possible, and most often.
  function placeOf(html, words) {
    const wanted = [words.together, ...words].filter(Boolean).map((word) => word.toLowerCase());
    let best = { id: "", found: 0, often: 0 };
    for (const place of articleOf(html)?.querySelectorAll("section[id], dl.glossary > dt[id]") ?? []) {
      const own = place.cloneNode(true);
      own.querySelectorAll("section, dl.glossary").forEach((inner) => inner.remove());
      const meaning = place.matches("dt") ? place.nextElementSibling.textContent : "";
      const text = `${own.textContent} ${meaning}`.toLowerCase();
      const times = wanted.map((word) => text.split(word).length - 1);
      const found = times.filter(Boolean).length;
      const often = times.reduce((sum, one) => sum + one, 0);
      if (found > best.found || (found === best.found && often > best.often)) best = { id: place.id, found, often };
    }
    return best.id;
  }

  // Sphinx appends the excerpt to the entry of a result; one whose link leads to a whole page gets the place with it.
  Search.makeSearchSummary = (html, words, anchor) => {
    const place = anchor ? "" : placeOf(html, words);
    const summary = summaryOf(html, words, place ? `#${CSS.escape(place)}` : anchor);
    if (summary && place) summary.dataset.place = place;
    return summary;
  };
  new MutationObserver(() => {
    for (const summary of document.querySelectorAll("#search-results p.context[data-place]")) {
      const link = summary.parentElement.querySelector("a");
      const page = link.getAttribute("href");
      if (!page.includes("#")) link.setAttribute("href", `${page}#${summary.dataset.place}`);
    }
  }).observe(document.body, { childList: true, subtree: true });

  // The query, and the query with each word of it replaced by those for the same thing.
  function variants(query) {
    const found = [query];
    for (const group of globalThis.courseSynonyms ?? []) {
      const used = group.toSorted((a, b) => b.length - a.length)
        .map((word) => new RegExp(`(?<![\\p{L}\\p{N}])${word}s?(?![\\p{L}\\p{N}])`, "iu"))
        .find((pattern) => pattern.test(query));
      if (!used) continue;
      const [own] = query.match(used);
      for (const word of group) {
        if (own.toLowerCase().replace(/s$/, "") !== word.toLowerCase().replace(/s$/, "")) {
          found.push(query.replace(used, word));
        }
      }
    }
    return found;
  }

  Search.query = (query) => {
    const asked = variants(query);
    const seen = new Set();
    const results = [];
    const marked = new Set();
    // What the reader wrote comes first. Sphinx gives the best result last.
    for (const one of asked) {
      const parsed = Search._parseQuery(one);
      const [, words, , highlighted] = parsed;
      words.together = one.trim();
      highlighted.forEach((word) => marked.add(word));
      for (const item of Search._performSearch(...parsed).reverse()) {
        const place = `${item[0]}${item[2]}|${item[1]}`;
        if (!seen.has(place)) results.push({ item, words, highlighted });
        seen.add(place);
      }
    }
    if (SPHINX_HIGHLIGHT_ENABLED) localStorage.setItem("sphinx_highlight_terms", [...marked].join(" "));
    if (asked.length > 1) {
      const also = document.createElement("p");
      also.className = "search-also";
      also.textContent = `Also searched for: ${asked.slice(1).join(", ")}`;
      Search.output.before(also);
    }
    const show = (next) => {
      if (next === results.length) return _finishSearch(results.length);
      const { item, words, highlighted } = results[next];
      _displayItem(item, words, highlighted);
      setTimeout(() => show(next + 1), 5);
    };
    show(0);
  };
})();
