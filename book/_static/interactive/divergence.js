// The divergence player: 32 lanes of a warp against its issue slots, and the listing of the program.
"use strict";

courseFigure.start("divergence", "A column is an issue slot, a row a lane. Filled: the lane executes the instruction. " +
  "Empty: it waits. ▸ and the frame mark the slot that you see.", ({ controls, svg, result }, numbers, redraw) => {
  const { choice, number, slider, value } = courseFigure;
  const { programs, patterns, runs, lanes } = numbers;
  const plural = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;

  const program = choice(controls, "Program", () => changed(), true);
  program.set(programs.map(({ name }) => [name, name]), numbers.first.program);
  const pattern = choice(controls, "Values of x", () => changed(), true);
  pattern.set(patterns.map(({ name }) => [name, name]), numbers.first.pattern);
  const limits = () => patterns.find(({ name }) => name === pattern.value);
  const k = number(controls, "k", numbers.first.k, () => [limits().low, limits().high], () => changed());
  const slot = slider(controls, "Slot", 1, (place) => `${place}`, redraw);
  const listing = d3.select(svg.node().parentNode).insert("div", "svg").attr("class", "listing").attr("tabindex", 0)
    .attr("role", "region").attr("aria-label", "The program");

  // The run of what is chosen; undefined for a k that is not allowed.
  function run() {
    k.check();
    return k.wrong ? undefined : runs[program.value][pattern.value][k.value - limits().low];
  }

  // The player goes back to the first slot of what is chosen.
  function begin() {
    const found = run();
    if (!found) return;
    slot.range(1, found.line.length);
    slot.value = 1;
  }
  function changed() {
    begin();
    redraw();
  }

  const working = (mask) => d3.range(lanes).filter((lane) => (mask >>> lane) & 1).length;

  function say(found) {
    if (!found) {
      const { low, high } = limits();
      result.html(`<strong class="limit">For these values of x, k must be a whole number from ${low} to ${high}.</strong>`);
      return;
    }
    const slots = found.line.length;
    const now = working(found.on[slot.value - 1]);
    const share = d3.sum(found.on, working) / (slots * lanes);
    const waiting = lanes - now
      ? `<strong>${value("waiting", lanes - now, plural(lanes - now, "lane"))}</strong> ${lanes - now === 1 ? "waits" : "wait"}`
      : `${value("waiting", 0, "no lane")} waits`;
    const verdict = slots > found.needed
      ? `The same work would fit ${value("needed", found.needed, plural(found.needed, "slot"))} if no lane ever waited.`
      : `No slot is wasted: ${value("needed", found.needed, found.needed)} are needed.`;
    result.html(`Slot ${value("slot", slot.value, slot.value)} of ${slots}: ${value("working", now, plural(now, "lane"))}
      ${now === 1 ? "works" : "work"} and ${waiting}. The warp uses <strong>${value("used", slots, plural(slots, "slot"))}</strong>.
      ${verdict} On average ${value("share", share, `${courseFigure.plain(100 * share)}%`)} of the lanes work. The busiest
      lane has ${value("longest", found.longest, plural(found.longest, "instruction"))}.`);
  }

  begin();
  return (width) => {
    const found = run();
    say(found);
    const { lines } = programs.find(({ name }) => name === program.value);
    const line = found ? found.line[slot.value - 1] : -1;
    listing.selectAll("span").data(lines).join("span").attr("class", (_, place) => (place === line ? "chosen" : null))
      .text((text, place) => `${place === line ? "▸" : " "} ${text}\n`);

    const edge = { left: 40, right: 4, top: 24, bottom: 26 };
    const row = 9;
    svg.attr("height", edge.top + lanes * row + edge.bottom);
    const slots = found ? found.line.length : 1;
    const wide = Math.min(60, (width - edge.left - edge.right) / slots);
    const gap = wide > 12 ? 2 : 1;
    svg.append("text").attr("x", edge.left).attr("y", 15).text(`${plural(slots, "slot")}, one after the other`);
    for (const lane of d3.range(0, lanes, 8)) {
      svg.append("text").attr("x", edge.left - 8).attr("y", edge.top + lane * row + 9).attr("text-anchor", "end").text(lane);
    }
    svg.append("text").attr("x", edge.left).attr("y", edge.top + lanes * row + 18).text("rows: lanes of the warp");
    if (!found) return;
    found.on.forEach((mask, place) => {
      for (let lane = 0; lane < lanes; lane += 1) {
        svg.append("rect").attr("class", (mask >>> lane) & 1 ? "thread holds" : "thread")
          .attr("x", edge.left + place * wide).attr("width", wide - gap)
          .attr("y", edge.top + lane * row).attr("height", row - 2);
      }
    });
    svg.append("rect").attr("class", "now").attr("x", edge.left + (slot.value - 1) * wide - 2).attr("width", wide + 4 - gap)
      .attr("y", edge.top - 3).attr("height", lanes * row + 4);
  };
});
