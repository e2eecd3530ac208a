// A network on a chip, mapped group by group: time, bytes and utilization of the chosen mapping beside the best one.
"use strict";

courseFigure.start("strategies", "Orange: memory is the longer of the two · blue: arithmetic is the longer · the upright mark is " +
  "the time of the best way, and ★ says that it is chosen · percent: share of the chip's peak",
({ controls, svg, result }, numbers, redraw) => {
  const { amount, choice, plain, value } = courseFigure;
  const { first, ways } = numbers;
  const network = choice(controls, "Network", () => { offer(); redraw(); }, true);
  const chip = choice(controls, "Chip", redraw);
  const everywhere = choice(controls, "Stays everywhere", () => { uniform(); redraw(); });
  network.set(numbers.networks.map((one) => [one.id, one.name]), first.network);
  chip.set(numbers.chips.map((one) => [one.id, one.name]), first.chip);
  everywhere.set([["ws", ways.ws], ["os", ways.os], ["is", ways.is]], first.flow);
  const buttons = controls.append("div").attr("class", "buttons");
  buttons.append("button").attr("type", "button").text("Best of each").on("click", () => {
    groups().forEach((group, k) => chosen[k].set(offered(group), group.best));
    redraw();
  });
  buttons.append("button").attr("type", "button").text("The same everywhere").on("click", () => { uniform(); redraw(); });
  const each = controls.append("div").attr("class", "field wide each");
  let chosen = [];
  offer();

  function groups() {
    return numbers.networks.find((one) => one.id === network.value).on[chip.value];
  }
  function offered(group) {
    return group.options.map((one) => [one.way, ways[one.way]]);
  }
  // A list for each group of layers of the network, at the uniform mapping.
  function offer() {
    each.selectChildren().remove();
    chosen = groups().map((group) => choice(each, group.name, redraw));
    uniform();
  }
  function uniform() {
    groups().forEach((group, k) => {
      const known = group.options.map((one) => one.way);
      const way = [everywhere.value, `${everywhere.value}-apart`, "apart"].find((one) => known.includes(one));
      chosen[k].set(offered(group), way);
    });
  }

  const limit = (cost) => (cost.memory > cost.compute ? "memory" : "compute");

  // Why the best way is best, compared with the chosen one, or with the worst one if the best is chosen.
  function why(group, best, other) {
    if (best.time > 0.98 * other.time) return `${group.name}: the choice hardly matters, because ${limit(best) === "memory"
      ? "about the same bytes move" : "the arrays are about equally busy"}`;
    const words = `${group.name}: <strong>${ways[best.way]}</strong>`;
    if (best.moved < 0.98 * other.moved && other.memory > 0.98 * other.compute) {
      return `${words}, because it moves ${amount(best.moved, "B")} instead of ${amount(other.moved, "B")}`;
    }
    if (best.compute < 0.98 * other.compute) {
      return `${words}, because the arrays would need ${amount(other.compute, "s")} with “${ways[other.way]}” and need ${
        amount(best.compute, "s")} with this`;
    }
    return `${words}, because arithmetic and bytes of its kernels overlap`;
  }

  return (width) => {
    const peak = numbers.chips.find((one) => one.id === chip.value).peak;
    const rows = groups().map((group, k) => {
      const now = group.options.find((one) => one.way === chosen[k].value);
      const best = group.options.find((one) => one.way === group.best);
      const worst = d3.greatest(group.options, (one) => one.time);
      return { group, now, best, worst };
    });
    const total = d3.sum(rows, (row) => row.now.time);
    const least = d3.sum(rows, (row) => row.best.time);
    const moved = d3.sum(rows, (row) => row.now.moved);
    const share = d3.sum(rows, (row) => row.now.flops) / peak / total;
    const reasons = rows.map((row) => why(row.group, row.best, row.now === row.best ? row.worst : row.now));
    result.html(`This mapping takes at least <strong>${value("time", total, amount(total, "s"))}</strong>, moves ${
      value("moved", moved, amount(moved, "B"))} and reaches ${value("share", share, plain(100 * share))}% of the peak. The best
      of each group takes ${value("least", least, amount(least, "s"))}. What is best, and why:
      <ul>${reasons.map((reason) => `<li>${reason}.</li>`).join("")}</ul>`);

    const narrow = width < 480;
    const edge = { left: 8, right: narrow ? 120 : 176 };
    const most = d3.max(rows, (row) => Math.max(row.now.time, row.best.time));
    const x = d3.scaleLinear([0, most], [edge.left, width - edge.right]);
    rows.forEach(({ group, now, best }, place) => {
      const y = 4 + 50 * place;
      svg.append("text").attr("class", "axis-name").attr("x", edge.left).attr("y", y + 13)
        .text(`${group.name}${now === best ? " ★" : ""}`);
      svg.append("rect").attr("class", `held part${limit(now) === "memory" ? 1 : 0}`).attr("x", edge.left).attr("y", y + 19)
        .attr("width", Math.max(1, x(now.time) - edge.left)).attr("height", 20);
      svg.append("line").attr("class", "fused").attr("x1", x(best.time)).attr("x2", x(best.time)).attr("y1", y + 16).attr("y2", y + 42);
      const used = now.flops ? `, ${plain(100 * now.flops / peak / now.time)}%` : "";
      svg.append("text").attr("class", "axis-name").attr("x", Math.max(x(now.time), x(best.time)) + 6).attr("y", y + 34)
        .text(`${amount(now.time, "s")}${used}${narrow ? "" : `, ${amount(now.moved, "B")}`}`);
    });
    svg.attr("height", 4 + 50 * rows.length);
  };
});
