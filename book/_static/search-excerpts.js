// Excerpts of search results are made of a page's article. Sphinx takes the whole main part, in which the theme also
// puts its buttons, the table of contents and the links at the end.
(() => {
  const textOf = Search.htmlToText;
  const ENDS = /<\/(dd|dt|figcaption|h\d|label|legend|li|p|pre|summary|td|th)>/g;

  Search.htmlToText = (html, anchor) => {
    const article = new DOMParser().parseFromString(html, "text/html").querySelector("article.bd-article");
    article.querySelector(".course-notebook")?.remove();
    article.setAttribute("role", "main");
    const spaced = article.outerHTML.replace(ENDS, " $&"); // or the words on both sides become one
    const text = textOf(spaced, anchor).trim() || textOf(spaced, ""); // some anchors are empty
    return text.replace(/\\[()[\]]/g, ""); // the marks around formulas
  };
})();
