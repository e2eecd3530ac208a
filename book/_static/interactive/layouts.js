// The coalescing player: the lanes of a warp read one after the other, and every sector that they touch moves whole.
"use strict";

courseFigure.start("layouts", "Each row is a line of 128 bytes, with its first byte, cut into four sectors. A filled " +
  "sector moves. The small boxes are what lanes asked for, orange the last lane. Untouched lines are left out.",
({ controls, svg, result }, numbers, redraw) => {
  const { choice, nextId, slider, value } = courseFigure;
  const { lanes: LANES, sector: SECTOR, line: LINE } = numbers.sizes;
  const OWN = "own";
  const STEP_MS = 450;
  const count = d3.format(",");
  const options = [[OWN, "Every s-th element of an array"],
    ...Object.entries(numbers.patterns).map(([name, one]) => [name, one.label])];

  const pattern = choice(controls, "What the warp reads", () => { stop(); takePattern(); redraw(); }, true);
  const id = nextId();
  const box = controls.append("div").attr("class", "field");
  box.append("label").attr("for", id).text("Stride s, in elements");
  const typed = box.append("input").attr("type", "number").attr("id", id).attr("min", 0)
    .attr("max", numbers.largest.stride).attr("step", 1);
  const width = choice(controls, "Bytes that a lane reads", () => { stop(); redraw(); });
  const start = slider(controls, "First element", 1, (place) => `${place}`, () => { stop(); redraw(); });
  const lane = slider(controls, "Lanes that have read", 1, (done) => `${done} of ${LANES}`, () => { stop(); redraw(); });
  const buttons = controls.append("div").attr("class", "buttons");
  const button = (text, pressed) => buttons.append("button").attr("type", "button").text(text).on("click", pressed);
  const back = button("Back", () => { stop(); go(lane.value - 1); });
  const next = button("Next", () => { stop(); go(lane.value + 1); });
  const play = button("Play", () => (timer ? stop() : begin()));

  let timer = null;
  let stride = numbers.first.stride;
  let refused = "";

  function go(place) {
    lane.value = Math.max(1, Math.min(LANES, place));
    redraw();
  }
  function begin() {
    result.attr("aria-live", "off"); // nobody can listen that fast; each step by hand is said
    play.text("Pause");
    go(lane.value === LANES ? 1 : lane.value + 1);
    timer = d3.interval(() => (lane.value === LANES ? stop() : go(lane.value + 1)), STEP_MS);
  }
  function stop() {
    timer?.stop();
    timer = null;
    play.text("Play");
    result.attr("aria-live", "polite");
  }
  function accept(text) {
    refused = text;
    typed.attr("aria-invalid", text ? "true" : null);
  }
  function takePattern() {
    accept("");
    const one = numbers.patterns[pattern.value];
    if (one) {
      stride = one.stride ?? null;
      width.set(numbers.widths.map((bytes) => [bytes, bytes]), one.width);
    } else {
      stride ??= numbers.first.stride;
    }
    typed.property("value", stride ?? "");
    lane.value = LANES;
  }
  typed.on("input", () => {
    stop();
    const entered = typed.property("value").trim();
    if (/^\d+$/.test(entered) && +entered <= numbers.largest.stride) {
      accept("");
      stride = +entered;
      pattern.set(options, OWN);
    } else {
      accept(`The stride must be a whole number from 0 to ${count(numbers.largest.stride)}. The drawing still shows ` +
        (stride === null ? "the list's pattern. " : `a stride of ${count(stride)}. `));
    }
    redraw();
  });

  pattern.set(options, OWN);
  width.set(numbers.widths.map((bytes) => [bytes, bytes]), numbers.first.width);
  typed.property("value", stride);
  start.range(0, numbers.largest.start);
  start.value = numbers.first.start;
  lane.range(1, LANES);
  lane.value = LANES;

  // The first byte of each lane's element.
  function addresses() {
    const elements = numbers.patterns[pattern.value]?.elements ?? d3.range(LANES).map((place) => place * stride);
    return elements.map((element) => +width.value * (start.value + element));
  }
  const bytesOf = (address) => d3.range(address, address + +width.value);

  function say(read) {
    const used = new Set(read.flatMap(bytesOf));
    const sectors = new Set([...used].map((byte) => Math.floor(byte / SECTOR)));
    const lines = new Set([...used].map((byte) => Math.floor(byte / LINE)));
    const moved = sectors.size * SECTOR;
    const last = read.at(-1);
    const done = read.length === LANES ? "All 32 lanes" : `After ${read.length} lane${read.length > 1 ? "s" : ""}`;
    const byte = +width.value === 1 ? `byte ${count(last)}` : `bytes ${count(last)} to ${count(last + +width.value - 1)}`;
    result.html(`${refused ? `<strong class="limit">${refused}</strong>` : ""}Lane ${read.length - 1} reads ${byte}.
      <strong>${done}: ${value("sectors", sectors.size, sectors.size)} sector${sectors.size > 1 ? "s" : ""}</strong> in
      ${value("lines", lines.size, lines.size)} line${lines.size > 1 ? "s" : ""}. ${value("moved", moved, count(moved))}
      bytes move, and ${value("used", used.size, count(used.size))} of them were asked for:
      ${value("efficiency", used.size / moved, d3.format(".3~r")(100 * used.size / moved))}%.`);
  }

  return (wide) => {
    const all = addresses();
    const read = all.slice(0, lane.value);
    say(read);
    back.attr("aria-disabled", lane.value === 1);
    next.attr("aria-disabled", lane.value === LANES);

    const lines = [...new Set(all.flatMap((at) => [at, at + +width.value - 1]).map((byte) => Math.floor(byte / LINE)))];
    lines.sort(d3.ascending);
    const columns = wide >= 620 && lines.length > 8 ? 2 : 1;
    const deep = Math.ceil(lines.length / columns);
    const step = deep > 8 ? 17 : 26;
    const [label, gap, top] = [56, 24, 6];
    const room = (wide - gap * (columns - 1)) / columns - label - 4;
    const perByte = room / LINE;
    const touched = new Set(read.flatMap((at) => [at, at + +width.value - 1]).map((byte) => Math.floor(byte / SECTOR)));
    svg.attr("height", 2 * top + deep * step);

    const place = (byte) => {
      const row = lines.indexOf(Math.floor(byte / LINE));
      return [Math.floor(row / deep) * (label + room + gap) + label + (byte % LINE) * perByte, top + (row % deep) * step];
    };
    const high = step - 5;
    for (const line of lines) {
      const [x, y] = place(line * LINE);
      svg.append("text").attr("x", x - 6).attr("y", y + high / 2).attr("dy", "0.35em").attr("text-anchor", "end")
        .text(count(line * LINE));
      for (const sector of d3.range(line * LINE / SECTOR, (line + 1) * LINE / SECTOR)) {
        const [left] = place(sector * SECTOR);
        svg.append("rect").attr("class", touched.has(sector) ? "sector moves" : "sector").attr("x", left).attr("y", y)
          .attr("width", SECTOR * perByte - 2).attr("height", high);
      }
    }
    read.forEach((at, number) => {
      const [x, y] = place(at);
      svg.append("rect").attr("class", number === read.length - 1 ? "asked last" : "asked").attr("x", x)
        .attr("y", y + 3).attr("width", Math.max(1.2, +width.value * perByte - 1.5)).attr("height", high - 6);
    });
  };
});
