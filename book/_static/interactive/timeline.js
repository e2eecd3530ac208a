// The timeline: a year or a step selects a chip; its dot is filled, and a sentence says what it gained at what price.
"use strict";

courseFigure.start("timeline", "The first three rows are limits that chips were made to lift, the last has chips for one job; the filled dot is the chip " +
  "below.",
  ({ controls, svg, result }, numbers, redraw) => {
  const { number, value } = courseFigure;
  const { chips, rows } = numbers;
  const first = chips[0].year;
  const last = chips[chips.length - 1].year;
  let chosen = chips.findIndex((chip) => chip.year === numbers.first);

  const typed = number(controls, `Year, ${first} to ${last}`, chips[chosen].year, () => [first, last], read);
  const buttons = controls.append("div").attr("class", "buttons");
  const earlier = buttons.append("button").attr("type", "button").text("Earlier").on("click", () => step(-1));
  const later = buttons.append("button").attr("type", "button").text("Later").on("click", () => step(1));

  // The latest chip up to the typed year.
  function read() {
    if (!typed.wrong) chosen = d3.bisectRight(chips.map((chip) => chip.year), typed.value) - 1;
    redraw();
  }

  function step(by) {
    select(Math.min(chips.length - 1, Math.max(0, chosen + by)));
  }

  function select(place) {
    chosen = place;
    typed.set(chips[chosen].year);
    redraw();
  }

  function say(chip) {
    earlier.attr("aria-disabled", chosen === 0 ? "true" : null);
    later.attr("aria-disabled", chosen === chips.length - 1 ? "true" : null);
    if (typed.wrong) {
      result.html(`<strong class="limit">The timeline has the years ${first} to ${last}: type a whole number in this range.</strong>`);
      return;
    }
    result.html(`<strong>${value("year", chip.year, chip.year)}, ${chip.name}.</strong> In silicon: ${chip.pattern}.
      Gain: <strong>${chip.gain}</strong>. Price: ${chip.cost}. Later: ${chip.later}. Source: <cite>${chip.source}</cite>.`);
  }

  return (width) => {
    const chip = chips[chosen];
    say(chip);
    const edge = { left: 96, right: 18, top: 24, bottom: 30 };
    const row = 46;
    const x = d3.scaleLinear([first - 1, last + 1], [edge.left, width - edge.right]);
    const y = (name) => edge.top + row * (rows.indexOf(name) + 0.5);
    const floor = edge.top + row * rows.length;
    svg.attr("height", floor + edge.bottom);
    svg.append("g").attr("class", "axes").attr("transform", `translate(0,${floor})`)
      .call(d3.axisBottom(x).ticks(width < 500 ? 4 : 9).tickFormat(d3.format("d")));
    for (const name of rows) {
      svg.append("text").attr("x", edge.left - 10).attr("y", y(name) + 5).attr("text-anchor", "end").text(name);
      svg.append("line").attr("class", "lane").attr("x1", x(first)).attr("x2", x(last)).attr("y1", y(name)).attr("y2", y(name));
    }
    for (const [place, each] of chips.entries()) {
      svg.append("circle").attr("class", place === chosen ? "chip chosen" : "chip").attr("cx", x(each.year))
        .attr("cy", y(each.row)).attr("r", place === chosen ? 9 : 6).on("click", () => select(place));
    }
    const side = x(chip.year) > width * 0.75 ? "end" : x(chip.year) < width * 0.4 ? "start" : "middle";
    svg.append("text").attr("class", "name").attr("x", x(chip.year)).attr("y", y(chip.row) - 14).attr("text-anchor", side)
      .text(chip.name);
  };
});
