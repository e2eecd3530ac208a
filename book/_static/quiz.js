// Scores the self-checks of a page. Without this script each choice has a fold with its feedback.
"use strict";

(() => {
  const quizzes = [...document.querySelectorAll("fieldset.course-quiz")];
  if (!quizzes.length) return;
  const nameOf = (quiz) => quiz.id.replace("quiz-", "");
  const firstTries = new Map(); // fieldset -> whether the first answer was right, in this browser
  for (const quiz of quizzes) {
    const kept = courseStore.load().quizzes[nameOf(quiz)];
    if (kept) firstTries.set(quiz, kept.right);
  }

  const score = document.createElement("p");
  score.className = "course-quiz-score";
  score.setAttribute("role", "status");
  quizzes.at(-1).after(score);

  const showScore = () => {
    const numbers = {
      answered: firstTries.size,
      all: quizzes.length,
      right: [...firstTries.values()].filter(Boolean).length,
    };
    score.textContent = quizzes[0].dataset.score.replace(/\{(\w+)\}/g, (_, name) => numbers[name]);
  };

  const check = (quiz) => {
    const reply = quiz.querySelector(".course-quiz-reply");
    const chosen = quiz.querySelector("input:checked");
    quiz.querySelectorAll(".course-quiz-choice").forEach((choice) => choice.classList.remove("is-right", "is-wrong"));
    if (!chosen) {
      reply.className = "course-quiz-reply";
      reply.textContent = quiz.dataset.choose;
      return;
    }
    const choice = chosen.closest(".course-quiz-choice");
    const right = choice.dataset.right === "true";
    choice.classList.add(right ? "is-right" : "is-wrong");
    reply.className = `course-quiz-reply ${right ? "is-right" : "is-wrong"}`;
    reply.replaceChildren(...[...choice.querySelector("details p").childNodes].map((node) => node.cloneNode(true)));
    if (!firstTries.has(quiz)) {
      firstTries.set(quiz, right);
      courseStore.put("quizzes", nameOf(quiz), { right });
      document.dispatchEvent(new Event("course-quiz-answered"));
    }
    showScore();
  };

  for (const quiz of quizzes) {
    quiz.classList.add("is-live");
    quiz.querySelector(".course-quiz-act").hidden = false;
    quiz.querySelector("button").addEventListener("click", () => check(quiz));
    quiz.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && event.target.matches("input")) {
        event.preventDefault();
        check(quiz);
      }
    });
    quiz.addEventListener("change", () => {
      quiz.querySelector(".course-quiz-reply").replaceChildren();
      quiz.querySelector(".course-quiz-reply").className = "course-quiz-reply";
      quiz.querySelectorAll(".course-quiz-choice").forEach((choice) => choice.classList.remove("is-right", "is-wrong"));
    });
  }
  showScore();
})();
