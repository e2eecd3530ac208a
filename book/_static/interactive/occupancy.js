// The occupancy explorer: the warp slots of one SM, what each resource allows, and the bytes in flight.
"use strict";

courseFigure.start("occupancy", "Above: warp slots, neighboring blocks in different colors. Below: how many blocks each resource " +
  "allows; the shortest bar is the limit. At the bottom: bytes in flight, and the band that keeps the memory busy.",
({ controls, svg, result }, numbers, redraw) => {
  const { choice, judged, nextId, plain, value } = courseFigure;
  const KIB = 1024;
  const chip = choice(controls, "Chip", () => { fitShared(); redraw(); });
  const inFlight = choice(controls, "Bytes that each thread has in flight", redraw);
  const theChip = () => numbers.chips.find((one) => one.id === chip.value);

  // A whole number, by slider or typed.
  function count(text, first, limits, unit) {
    const id = nextId();
    const field = controls.append("div").attr("class", "field wide");
    const label = field.append("label").attr("for", id).text(text);
    const row = field.append("div").attr("class", "slide");
    const slide = row.append("input").attr("type", "range").attr("aria-label", `${text}, as a slider`).attr("step", 1);
    const typed = row.append("input").attr("type", "number").attr("id", id).attr("step", 1).property("value", first);
    const one = judged(typed, label, limits);
    function fit() {
      one.check();
      const [low, high] = limits();
      slide.attr("min", low).attr("max", high).property("value", one.value).attr("aria-valuetext", `${one.value} ${unit}`);
    }
    slide.on("input", () => { typed.property("value", slide.property("value")); fit(); redraw(); });
    typed.on("input", () => { fit(); redraw(); });
    return Object.assign(one, { fit });
  }
  const threads = count("Threads of a block", numbers.first.threads, () => [1, theChip().sm.threads_per_block], "threads");
  const registers = count("Registers of a thread", numbers.first.registers,
    () => [1, theChip().sm.registers_per_thread], "registers");
  const shared = count("Shared memory of a block, KiB", numbers.first.shared_kib,
    () => [0, Math.floor(theChip().sm.shared_bytes_per_block / KIB)], "KiB");
  const fitShared = () => { for (const one of [threads, registers, shared]) one.fit(); };

  chip.set(numbers.chips.map((one) => [one.id, one.name]), numbers.first.chip);
  inFlight.set(numbers.bytes.map((one) => [one, `${one} bytes`]), numbers.first.bytes);
  fitShared();

  const up = (amount, unit) => Math.ceil(amount / unit) * unit;

  function occupancy(sm) {
    const perBlock = Math.ceil(threads.value / numbers.lanes);
    const places = Math.floor(sm.threads / numbers.lanes);
    const ofWarp = up(registers.value * numbers.lanes, sm.register_unit);
    const ofBlock = up(shared.value * KIB + sm.shared_reserved, sm.shared_unit);
    const held = Math.floor(sm.registers / sm.partitions / ofWarp) * sm.partitions;
    const limits = [
      { name: "warps", blocks: Math.floor(places / perBlock) },
      { name: "registers", blocks: Math.floor(held / perBlock) },
      ...(ofBlock > 0 ? [{ name: "shared memory", blocks: Math.floor(sm.shared_bytes / ofBlock) }] : []),
      { name: "blocks", blocks: sm.blocks },
    ];
    const blocks = d3.min(limits, (one) => one.blocks);
    return { perBlock, places, limits, blocks, warps: blocks * perBlock };
  }

  function say(found) {
    const wrong = [threads, registers, shared].find((one) => one.wrong);
    if (wrong) {
      result.html(`<strong class="limit wrong"></strong>`).select(".wrong").text(wrong.wrong);
      return;
    }
    const names = found.limits.filter((one) => one.blocks === found.blocks).map((one) => one.name).join(" and ");
    if (!found.blocks) {
      result.html(`${value("blocks", 0, "No block")} fits an SM: this launch fails. The reason:
        <strong class="limit">${names}</strong>. Use fewer registers or a smaller block.`);
      return;
    }
    const share = found.warps / found.places;
    const bytes = found.warps * numbers.lanes * Number(inFlight.value);
    const need = theChip().needed;
    const buys = !need
      ? "No latency of this chip's memory is in our data, so we cannot say whether that is enough."
      : bytes < need[0] ? `That is <strong class="enough">too little</strong>: the memory needs ${plain(need[0] / 1000)} to
          ${plain(need[1] / 1000)} kB. More warps would help, and so would more bytes per thread.`
      : bytes < need[1] ? `That is <strong class="enough">hardly enough</strong>: the memory needs ${plain(need[0] / 1000)} to
          ${plain(need[1] / 1000)} kB.`
      : `That is <strong class="enough">enough</strong>: the memory needs ${plain(need[0] / 1000)} to
          ${plain(need[1] / 1000)} kB. More warps would not make it faster.`;
    const noun = found.blocks === 1 ? "block" : "blocks";
    result.html(`An SM holds ${value("blocks", found.blocks, found.blocks)} ${noun}, with ${value("warps", found.warps, found.warps)}
      of ${found.places} warps: an occupancy of <strong>${value("share", share, `${plain(100 * share)}%`)}</strong>.
      The limit: <strong class="limit">${names}</strong>. Its threads have
      ${value("bytes", bytes, `${plain(bytes / 1000)} kB`)} in flight. ${buys}`);
  }

  return (width) => {
    const { sm, needed } = theChip();
    const found = occupancy(sm);
    say(found);
    const edge = { left: 8, right: 8 };
    const room = width - edge.left - edge.right;
    const columns = found.places / sm.partitions;
    const cell = room / columns;
    const high = Math.min(cell, 26);
    for (let place = 0; place < found.places; place += 1) {
      const taken = place < found.warps;
      const block = Math.floor(place / found.perBlock);
      svg.append("rect").attr("class", taken ? `place ${["A", "B", "C"][block % 3]}` : "place")
        .attr("x", edge.left + Math.floor(place / sm.partitions) * cell + 1).attr("width", cell - 2)
        .attr("y", 2 + (place % sm.partitions) * high + 1).attr("height", high - 2);
    }
    let y = sm.partitions * high + 24;
    const most = d3.max(found.limits.filter((one) => one.blocks <= sm.blocks), (one) => one.blocks) || 1;
    const long = d3.scaleLinear([0, most], [0, room]).clamp(true);
    for (const { name, blocks } of found.limits) {
      const limit = blocks === found.blocks;
      svg.append("text").attr("class", limit ? "missing" : null).attr("x", edge.left).attr("y", y)
        .text(name === "blocks" ? `block slots: ${blocks}` : `${name}: enough for ${blocks} ${blocks === 1 ? "block" : "blocks"}`);
      svg.append("rect").attr("class", limit ? "allows least" : "allows").attr("x", edge.left).attr("y", y + 5)
        .attr("width", Math.max(2, long(blocks))).attr("height", 9);
      y += 34;
    }
    const bytes = found.warps * numbers.lanes * Number(inFlight.value);
    const x = d3.scaleLog([500, 1000000], [edge.left, width - edge.right]).clamp(true);
    y += 4;
    if (needed) {
      svg.append("rect").attr("class", "need").attr("x", x(needed[0])).attr("width", x(needed[1]) - x(needed[0]))
        .attr("y", y - 14).attr("height", 30);
    }
    svg.append("rect").attr("class", "flight").attr("x", edge.left).attr("y", y).attr("height", 9)
      .attr("width", bytes ? Math.max(2, x(bytes) - edge.left) : 0);
    y += 18;
    svg.append("g").attr("class", "axes").attr("transform", `translate(0,${y})`)
      .call(d3.axisBottom(x).tickValues([1000, 10000, 100000]).tickFormat((one) => `${one / 1000} kB`));
    svg.append("text").attr("class", "axis-name").attr("x", width / 2).attr("y", y + 36).attr("text-anchor", "middle")
      .text("bytes in flight of an SM");
    svg.attr("height", y + 44);
  };
});
