// What all interactive figures share: finding them, controls with labels, text for numbers.
"use strict";

window.courseFigure = (() => {
  let count = 0;
  let words = {}; // of the page's language, by the English ones; the build has seen that none is missing

  // A text in the language of the page, with values in the place of words in {braces}.
  const said = (text, values = {}) => (words[text] ?? text).replace(/\{(\w+)\}/g, (_, name) => values[name]);

  const nextId = () => `course-figure-${++count}`;

  // Puts a drawing in the place of the static picture of each figure of that name, with the key to its marks below.
  // build(parts, numbers, redraw) makes the controls, which call redraw, and returns what draws for a width in pixels.
  function start(name, key, build) {
    for (const figure of document.querySelectorAll(`figure[data-figure="${name}"]`)) {
      words = { ...words, ...JSON.parse(figure.dataset.words ?? "{}") };
      const numbers = JSON.parse(figure.querySelector('script[type="application/json"]').textContent);
      const [controls, drawing, result] = [".controls", ".drawing", ".result"].map((part) => d3.select(figure).select(part));
      drawing.selectChildren().remove();
      d3.select(figure).insert("p", ".result").attr("class", "key").text(said(key));
      const svg = drawing.append("svg").attr("role", "img");
      let width = 0;
      const redraw = () => {
        svg.attr("width", width).selectChildren().remove();
        draw(width);
        svg.attr("aria-label", `${figure.dataset.title}: ${result.node().innerText}`);
      };
      const draw = build({ controls, svg, result }, numbers, redraw);
      controls.attr("hidden", null);
      figure.querySelector("details").open = false;
      new ResizeObserver(([entry]) => {
        const now = Math.max(280, Math.floor(entry.contentRect.width));
        if (now !== width) {
          width = now;
          redraw();
        }
      }).observe(drawing.node());
    }
  }

  function field(controls, text, id) {
    const box = controls.append("div").attr("class", "field");
    box.append("label").attr("for", id).text(text);
    return box;
  }

  // A list; set(options, value) fills it with options [value, text].
  function choice(controls, text, changed, wide) {
    const id = nextId();
    const select = field(controls, text, id).classed("wide", wide).append("select").attr("id", id).on("change", changed);
    return {
      get value() { return select.property("value"); },
      set(options, value) {
        select.selectAll("option").data(options).join("option").attr("value", (d) => d[0]).text((d) => d[1]);
        select.property("value", value);
      },
    };
  }

  // A slider; said(place) is what it shows and says. Answers { value, range(low, high) }.
  function slider(controls, text, step, said, changed) {
    const id = nextId();
    const row = field(controls, text, id).classed("wide", true).append("div").attr("class", "slide");
    const input = row.append("input").attr("type", "range").attr("id", id).attr("step", step);
    const shown = row.append("span").attr("class", "shown").attr("aria-hidden", "true");
    const say = () => {
      input.attr("aria-valuetext", said(+input.property("value")));
      shown.text(said(+input.property("value")));
    };
    input.on("input", () => { say(); changed(); });
    return {
      get value() { return +input.property("value"); },
      set value(place) { input.property("value", place); say(); },
      range(low, high) { input.attr("min", low).attr("max", high); },
    };
  }

  // Judges what is typed into a number field, of which `label` is the label: a number between the two limits() that may
  // change, whole or not. Answers { value, wrong, check(), set(value) }: the last number that fitted; a sentence that says
  // what is allowed if what stands there does not fit, or null; a new look at it; and another number to stand there.
  function judged(input, label, limits, whole = true) {
    const one = {
      value: Number(input.property("value")),
      wrong: null,
      check() {
        const [low, high] = limits();
        const typed = input.attr("min", low).attr("max", high).property("value").trim();
        const number = Number(typed);
        const fits = typed !== "" && number >= low && number <= high && (!whole || Number.isInteger(number));
        const range = { label: label.text(), typed: typed || said("nothing"), low: plain(low), high: plain(high) };
        one.wrong = fits ? null : whole
          ? said("{label}: {typed} is not possible. Enter a whole number from {low} to {high}.", range)
          : said("{label}: {typed} is not possible. Enter a number from {low} to {high}.", range);
        if (fits) one.value = number;
        input.attr("aria-invalid", fits ? null : "true");
      },
      set(value) {
        input.property("value", value);
        one.check();
      },
    };
    return one;
  }

  // A field for a typed number, judged at every change; it also answers its box.
  function number(controls, text, first, limits, changed, whole = true) {
    const id = nextId();
    const box = field(controls, text, id);
    const input = box.append("input").attr("type", "number").attr("id", id).attr("step", whole ? 1 : "any")
      .property("value", first).on("input", () => { one.check(); changed(); });
    const one = judged(input, box.select("label"), limits, whole);
    one.check();
    return Object.assign(one, { box });
  }

  // Three significant digits, or all digits of what is larger: 0.51, 63.3, 1,307.
  function plain(number) {
    return d3.format(number >= 100 ? ",.0f" : ".3~r")(number);
  }

  // With the prefix of the unit: 8.65 MB, 439 µs.
  function amount(number, unit) {
    const [, digits, prefix] = d3.format(".3~s")(number).match(/^([\d.]+)(.*)$/);
    return `${digits} ${prefix}${unit}`;
  }

  // A number in running text, with its exact value for whoever reads the page by program.
  const value = (name, number, text) => `<data class="${name}" value="${number}">${text}</data>`;

  return { start, said, nextId, choice, slider, judged, number, plain, amount, value };
})();
