// The course: lessons to read, each with a quiz. course.py makes their HTML from docs/course.
// Answers are kept as long as the page is open: answers[lesson][question] is { first, now }, letters of options.
const lessonsOf = () => explore.data.course || [];
const answers = {};
const lastLesson = () => lessonsOf()[lessonsOf().length - 1];
const answersOf = (lesson) => (answers[lesson.number] ||= lesson.questions.map(() => null));

// ---- a lesson as HTML ----
function questionOf(lesson, question, at) {
  const name = `course-${lesson.number}-${at}`;
  const options = Object.entries(question.options).map(([letter, text]) =>
    `<label><input type="radio" name="${name}" value="${letter}"><span>${letter}.</span><span>${text}</span></label>`);
  return `<form class="question" data-question="${at}"><fieldset>
    <legend>${at + 1}. ${question.text}${question.hard ? " <small>(harder)</small>" : ""}</legend>
    <div>${options.join("")}</div><button type="submit">Check the answer</button>
    <div class="said" aria-live="polite"></div></fieldset></form>`;
}
function notesOf(lesson) {
  const notes = Object.entries(lesson.notes);
  const back = (label) => `<a href="#course&amp;lesson=${lesson.number}" data-back="${label}" aria-label="Back to the text, from footnote ${label}">↩</a>`;
  if (!notes.length) return "";
  const items = notes.map(([label, text]) => `<li value="${label}" data-note="${label}" tabindex="-1">${text} ${back(label)}</li>`);
  return `<section class="notes" aria-label="Footnotes"><ol>${items.join("")}</ol></section>`;
}
function lessonHtml(lesson, following) {
  const onward = following
    ? `Next: <a href="#course&amp;lesson=${following.number}">Lesson ${following.number}: ${following.title}</a>`
    : `This was the last lesson. The other views of this page let you try what you have read.`;
  return `<h3>Lesson ${lesson.number}: ${lesson.title}</h3>${lesson.html}
    <h4>Questions</h4><p>The lesson answers the first three. The other two are harder.</p>
    ${lesson.questions.map((question, at) => questionOf(lesson, question, at)).join("")}
    <p class="total"></p>
    <h4>After this lesson you can</h4><ul>${lesson.abilities.map((item) => `<li>${item}</li>`).join("")}</ul>
    <p class="onward">${onward}</p>${notesOf(lesson)}`;
}
// Tables, pictures and code may be wider than a phone: they scroll by themselves, by keyboard too.
function letWideThingsScroll(article) {
  const region = (label) => ({ class: "scroll", tabindex: "0", role: "region", "aria-label": label });
  [...article.querySelectorAll("table")].forEach((table, i) => {
    const box = element("div", region(`Table ${i + 1}`));
    table.replaceWith(box);
    box.append(table);
  });
  for (const image of article.querySelectorAll("img")) image.parentElement.replaceWith(fill(element("div"), region("Picture"), [image]));
  [...article.querySelectorAll("pre")].forEach((block, i) => fill(block, { tabindex: "0", role: "region", "aria-label": `Code ${i + 1}` }));
}

// ---- the quiz ----
function scoreOf(lesson) {
  const given = answersOf(lesson);
  return {
    answered: given.filter(Boolean).length,
    right: given.filter((one, at) => one?.first === lesson.questions[at].answer).length,
    of: lesson.questions.length,
  };
}
function showScore(page) {
  const { answered, right, of } = scoreOf(page.lesson), all = lessonsOf().map(scoreOf);
  const sum = (name) => all.reduce((total, one) => total + one[name], 0);
  const done = answered === of && right === of ? " Everything is right." : "";
  const total = answered ? `You answered ${answered} of ${of} questions; ${right} right at the first try.${done}` : "";
  page.article.querySelector(".total").textContent = total;
  page.score.textContent = sum("answered")
    ? `Right at the first try: ${right} of ${of} in this lesson, ${sum("right")} of ${sum("of")} in the course.`
    : "Your score will stand here. It is forgotten when you close the page.";
}
// Shows what is known of a question: nothing, or the answer with its explanation.
function showAnswer(form, question, now) {
  const right = now === question.answer;
  for (const label of form.querySelectorAll("label")) {
    const letter = label.firstElementChild.value;
    label.classList.toggle("right", Boolean(now) && letter === question.answer);
    label.classList.toggle("wrong", Boolean(now) && letter === now && !right);
  }
  const words = right ? "✓ Right." : `✗ Not right. The answer is ${question.answer}.`;
  form.querySelector(".said").innerHTML = now ? `<p class="${right ? "right" : "wrong"}"><strong>${words}</strong></p>${question.explanation}` : "";
}
function check(page, form) {
  const at = Number(form.dataset.question), question = page.lesson.questions[at], chosen = form.querySelector("input:checked");
  if (!chosen) {
    form.querySelector(".said").innerHTML = "<p>Choose an option first.</p>";
    return;
  }
  const given = answersOf(page.lesson);
  given[at] = { first: given[at]?.first ?? chosen.value, now: chosen.value };
  showAnswer(form, question, chosen.value);
  showScore(page);
}
// Another choice takes back what was said, until it is checked.
function choose(page, form) {
  const at = Number(form.dataset.question), given = answersOf(page.lesson)[at];
  if (given) given.now = null;
  showAnswer(form, page.lesson.questions[at], null);
}

// ---- footnotes ----
function follow(page, event) {
  const link = event.target.closest("a");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  if (link.classList.contains("mark")) {
    page.from = link;
    page.article.querySelector(`[data-note="${link.textContent}"]`).focus();
  } else if (link.dataset.back) {
    const marks = [...page.article.querySelectorAll(".mark")].filter((mark) => mark.textContent === link.dataset.back);
    (marks.includes(page.from) ? page.from : marks[0]).focus();
  } else return;
  event.preventDefault();
}

function showLesson(page, lesson) {
  const list = lessonsOf(), later = Boolean(page.lesson);
  page.lesson = lesson;
  page.article.innerHTML = lessonHtml(lesson, list[list.indexOf(lesson) + 1]);
  letWideThingsScroll(page.article);
  page.article.querySelectorAll(".question").forEach((form, at) => {
    const now = answersOf(lesson)[at]?.now;
    if (!now) return;
    form.querySelector(`input[value="${now}"]`).checked = true;
    showAnswer(form, lesson.questions[at], now);
  });
  showScore(page);
  if (later && page.article.getBoundingClientRect().top < 0) page.article.scrollIntoView();
}

addView({
  id: "course",
  order: 100,
  title: "The course and its quiz",
  intro: `<p>Eight short lessons, from attention that sees no order to the rounding of angles. You need school mathematics;
    lesson 1 explains attention from the start. After each lesson there are five questions: choose an option, check it, and
    read why it is right or wrong.</p>`,
  get controls() {
    const options = Object.fromEntries(lessonsOf().map(({ number, title }) => [number, `${number}. ${title}`]));
    return lessonsOf().length ? [{ id: "lesson", label: "Lesson", options, value: String(lessonsOf()[0].number) }] : [];
  },
  setup(page) {
    if (!lessonsOf().length) {
      page.html(`<p class="note">This page was made without the lessons. They are in docs/course.</p>`);
      return;
    }
    const step = (by) => page.set({ lesson: String(Math.min(lessonsOf().length, Math.max(1, Number(page.state.lesson) + by))) });
    page.back = page.button("← Back", () => step(-1));
    page.next = page.button("Next →", () => step(1));
    page.score = page.html(`<p class="score"></p>`, page.panel);
    page.article = page.html(`<article class="lesson"></article>`);
    page.article.addEventListener("submit", (event) => { event.preventDefault(); check(page, event.target); });
    page.article.addEventListener("change", (event) => choose(page, event.target.form));
    page.article.addEventListener("click", (event) => follow(page, event));
  },
  draw({ lesson: number }, page) {
    if (!page.article) return;
    const lesson = lessonsOf().find((one) => String(one.number) === number);
    page.back.setAttribute("aria-disabled", lesson === lessonsOf()[0]);
    page.next.setAttribute("aria-disabled", lesson === lastLesson());
    if (lesson !== page.lesson) showLesson(page, lesson);
  },
});
