// Keeps a reader's predictions in the browser. Without this script the choices are a list and the answer is a box.
"use strict";

(() => {
  const filled = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => values[name]);

  const showSettled = (name) => {
    const box = document.getElementById(`settled-${name}`);
    if (!box) return;
    const line = box.querySelector(".course-settled-yours");
    const made = courseStore.load().predictions[name];
    const right = made && made.letter === box.dataset.letter;
    box.classList.toggle("is-right", Boolean(right));
    if (made) {
      const language = box.closest("[lang]").lang;
      const date = new Date(made.at).toLocaleDateString(language, { dateStyle: "long" });
      line.textContent = filled(right ? box.dataset.right : box.dataset.wrong, { letter: made.letter, date });
    } else {
      line.textContent = box.dataset.none;
    }
    line.hidden = false;
  };

  const showPredicted = (box) => {
    const made = courseStore.load().predictions[box.dataset.name];
    box.querySelectorAll("input").forEach((input) => (input.checked = input.value === made?.letter));
    box.querySelector("[role=status]").textContent = made ? filled(box.dataset.kept, made) : "";
    showSettled(box.dataset.name);
  };

  const choiceOf = (item, box) => {
    const row = document.createElement("div");
    const button = document.createElement("input");
    const label = document.createElement("label");
    button.type = "radio";
    button.name = box.id;
    button.value = item.dataset.letter;
    button.id = `${box.id}-${item.dataset.letter}`;
    if (item.dataset.spoken) button.setAttribute("aria-label", item.dataset.spoken);
    label.htmlFor = button.id;
    const only = item.children.length === 1 && item.firstElementChild.matches("p") ? item.firstElementChild : item;
    label.append(...only.childNodes);
    row.className = "course-predict-choice";
    row.append(button, label);
    return row;
  };

  for (const box of document.querySelectorAll("div.course-predict[data-name]")) {
    const group = document.createElement("fieldset");
    const legend = document.createElement("legend");
    const status = document.createElement("p");
    legend.textContent = box.dataset.choose;
    status.className = "course-predict-kept";
    status.setAttribute("role", "status");
    status.setAttribute("aria-live", "polite");
    const lists = [...box.querySelectorAll(".course-predict-choices")];
    lists[0].before(group);
    group.append(legend, ...lists.flatMap((list) => [...list.children].map((item) => choiceOf(item, box))), status);
    lists.forEach((list) => list.remove());
    group.addEventListener("change", (event) => {
      courseStore.put("predictions", box.dataset.name, { letter: event.target.value, at: Date.now() });
      showPredicted(box);
    });
    showPredicted(box);
  }
})();
