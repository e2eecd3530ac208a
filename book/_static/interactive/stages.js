// The compiler's stages: one kernel in five forms, a line of it marked in each, and the thread that holds an element.
"use strict";

courseFigure.start("stages", "▸ and the colored ground mark what the chosen line became. " +
  "In the drawing, one cell is a thread; the filled one holds the chosen element.", ({ controls, svg, result }, numbers, redraw) => {
  const { choice, slider, nextId, value } = courseFigure;
  const { stages, layout, elements } = numbers;
  const plural = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;

  const stage = slider(controls, "Stage", 1, (place) => stages[place].name, redraw);
  stage.range(0, stages.length - 1);
  stage.value = numbers.first.stage;
  const line = choice(controls, "Line of the kernel", redraw, true);
  line.set(numbers.lines.map(({ number, text }) => [number, text]), numbers.first.line);
  const id = nextId();
  const field = controls.append("div").attr("class", "field");
  field.append("label").attr("for", id).text(`Element of the block, 0 to ${elements - 1}`);
  const typed = field.append("input").attr("type", "number").attr("id", id).attr("min", 0).attr("max", elements - 1)
    .attr("step", 1).property("value", numbers.first.element).on("input", redraw);
  const listing = d3.select(svg.node().parentNode).insert("div", "svg").attr("class", "listing").attr("tabindex", 0)
    .attr("role", "region");

  // The thread that holds an element; undefined for what is no element of the block.
  function holder() {
    const text = typed.property("value");
    const element = Number(text);
    if (text === "" || !Number.isInteger(element) || element < 0 || element >= elements) return undefined;
    const thread = Math.floor(element / layout.size);
    return {
      element, thread, place: element % layout.size,
      warp: Math.floor(thread / layout.lanes), lane: thread % layout.lanes,
    };
  }

  function say(now, marked, found) {
    const became = now.name === "Python" ? "This is the line as you write it." :
      `The line became <strong>${value("lines", marked, plural(marked, "line"))}</strong> of ${now.name}.`;
    let where;
    if (!found) {
      where = `<strong class="limit">The block has the elements 0 to ${elements - 1}</strong>: type a whole number in this range.`;
    } else if (now.whole) {
      where = `Element ${value("element", found.element, found.element)} is somewhere in the block. No thread has it yet.`;
    } else {
      where = `Thread ${value("thread", found.thread, found.thread)} holds element
        ${value("element", found.element, found.element)}: lane ${value("lane", found.lane, found.lane)} of warp
        ${value("warp", found.warp, found.warp)}, number ${value("place", found.place, found.place)} of its
        ${layout.size}, counted from 0.`;
    }
    result.html(`${now.note} ${became} ${where} <span class="made">(${numbers.made})</span>`);
  }

  function list(now) {
    const chosen = +line.value;
    listing.attr("aria-label", `The kernel as ${now.name}`).selectAll("span").data(now.lines).join("span")
      .attr("class", ([source]) => (source === chosen ? "chosen" : null))
      .text(([source, text]) => `${source === chosen ? "▸" : " "}${text}\n`);
    const first = listing.select(".chosen").node();
    if (first) listing.node().scrollTop = first.offsetTop - listing.node().offsetTop - 40;
    return now.lines.filter(([source]) => source === chosen).length;
  }

  return (width) => {
    const now = stages[stage.value];
    const found = holder();
    say(now, list(now), found);

    const edge = { left: 58, right: 4, top: 24, bottom: 6 };
    const row = 22;
    svg.attr("height", edge.top + layout.warps * row + edge.bottom);
    const x = d3.scaleLinear([0, layout.lanes], [edge.left, width - edge.right]);
    const each = layout.lanes * layout.size;
    svg.append("text").attr("x", edge.left).attr("y", 15)
      .text(now.whole ? "the block" : `lanes 0 to ${layout.lanes - 1}`);
    for (let warp = 0; warp < layout.warps; warp += 1) {
      const y = edge.top + warp * row;
      svg.append("text").attr("x", edge.left - 8).attr("y", y + 15).attr("text-anchor", "end")
        .text(now.whole ? warp * each : `warp ${warp}`);
      for (let lane = 0; lane < (now.whole ? 1 : layout.lanes); lane += 1) {
        const right = now.whole ? layout.lanes : lane + 1;
        const holds = found && !now.whole && found.warp === warp && found.lane === lane;
        svg.append("rect").attr("class", holds ? "thread holds" : "thread").attr("x", x(lane)).attr("y", y)
          .attr("width", x(right) - x(lane)).attr("height", row - 4);
      }
      if (found && now.whole && found.warp === warp) {
        const at = x((found.element % each) / layout.size);
        svg.append("rect").attr("class", "thread holds").attr("x", at).attr("y", y)
          .attr("width", Math.max(2, x(1 / layout.size) - x(0))).attr("height", row - 4);
      }
    }
  };
});
