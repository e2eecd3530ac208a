"""A site of two pages as the build writes it: one chapter with one of everything, and a bibliography."""

from pathlib import Path

REPOSITORY = Path(__file__).parents[2]

TOC = """format: jb-book
root: book/index
parts:
  - caption: Chapters
    chapters:
      - file: book/memory/cache
  - caption: Reference
    chapters:
      - file: book/reference/bibliography
  - caption: About
    chapters:
      - file: book/about/instructor
"""

PAGE = """<!DOCTYPE html>
<html lang="en" data-theme="auto"><head><title>{title}</title></head><body><main>
<article class="bd-article">
<section class="tex2jax_ignore mathjax_ignore" id="{name}">
<h1>{title}<a class="headerlink" href="#{name}">#</a></h1>
{body}
</section>
</article></main></body></html>
"""

CHAPTER = r"""<p class="course-notebook"><a href="https://example.org">Open in Colab</a>
<a href="../../chapters/cache.ipynb" download>Download the notebook</a></p>
<div class="course-question admonition"><p class="admonition-title">The question</p><p>How many bytes?</p></div>
<p>After this chapter, you will be able to</p>
<ul class="simple"><li><p>count bytes.</p></li></ul>
<div class="admonition course-predict" id="predict-cache" data-name="cache">
<p class="admonition-title">Predict before you read</p><p>How large?</p>
<ul class="course-predict-choices"><li data-letter="a"><p>(a) 16</p></li><li data-letter="b"><p>(b) 64</p></li></ul>
<p class="course-predict-where">See <a class="reference internal" href="#cache-settled">1. Settled</a>.</p></div>
<section id="settled">
<span id="cache-settled"></span><h2>1. Settled<a class="headerlink" href="#settled">#</a></h2>
<div class="admonition course-settled" id="settled-cache" data-name="cache" data-letter="b">
<p class="admonition-title">The answer is (b).</p><p class="course-settled-yours" role="status" hidden></p>
<p>It is 64.</p></div>
<p>Half of <span class="math notranslate nohighlight">\(2T\)</span> is
<a class="reference internal" href="../reference/bibliography.html#id7">1991</a>, see
<a class="reference internal" href="#fig-bytes">Figure 1</a> and <a class="reference external"
href="https://example.org/x">elsewhere</a>; teachers read <a class="reference internal"
href="../about/instructor.html">more</a>.</p>
<figure class="align-default" id="fig-bytes"><img alt="A falling line." src="../../_images/bytes.svg" />
<figcaption><p><span class="caption-number">Figure 1 </span><span class="caption-text">Bytes fall.</span></p>
</figcaption>
</figure>
<figure class="course-interactive" id="interactive-bytes" data-figure="bytes" data-title="Bytes">
<div class="controls" role="group" hidden></div>
<div class="drawing"><img alt="A rising line." loading="lazy" src="../../_images/bytes.svg" /></div>
<div class="result" role="status"></div>
<details open><summary>Numbers behind the picture</summary><p>Moved</p>
<table class="table"><thead><tr><th><p>side</p></th></tr></thead><tbody><tr><td><p>16</p></td></tr></tbody></table>
</details><figcaption><p>Choose a side.</p></figcaption><script type="application/json">{}</script></figure>
<div class="math notranslate nohighlight">
\[
x = \frac{1}{2}
\]</div>
<div class="admonition course-rule"><p class="admonition-title">The rule to carry away</p><p>Twice, half.</p></div>
</section>
<section id="pitfalls"><h2>2. Pitfalls</h2><ul><li><p><strong>Too large.</strong> It spills.</p></li></ul></section>
<section id="check"><h2>3. Check yourself</h2>
<fieldset class="course-quiz" id="quiz-cache-side" data-right="Right." data-wrong="Not this one.">
<legend>1. Which <em>side</em> <span class="math notranslate nohighlight">\(T &lt; 9\)</span> fits the
<a class="reference internal" href="#fig-bytes">cache</a>?</legend>
<div class="course-quiz-choice" data-right="false">
<input type="radio" name="quiz-cache-side" id="q1"><label for="q1">16 &amp; more</label>
<details><summary>Is this right?</summary>
<p><strong>Not this one.</strong> <span>It is small.</span></p></details></div>
<div class="course-quiz-choice" data-right="true">
<input type="radio" name="quiz-cache-side" id="q2"><label for="q2"><code>64</code></label>
<details><summary>Is this right?</summary><p><strong>Right.</strong> <span>It fits.</span></p></details></div>
<p class="course-quiz-act" hidden><button type="button">Check the answer</button></p>
<p class="course-quiz-reply" role="status"></p></fieldset></section>
<section id="exercises"><h2>4. Exercises</h2><p><strong>1. Count.</strong></p>
<details class="sd-sphinx-override sd-dropdown sd-card sd-mb-3">
<summary class="sd-summary-title sd-card-header"><span class="sd-summary-text">Solution</span></summary>
<div class="sd-summary-content sd-card-body docutils"><p>The secret is
<span class="math notranslate nohighlight">\(42\)</span>.</p>
<table class="table"><thead><tr><th><p>n</p></th></tr></thead><tbody><tr><td><p>42</p></td></tr></tbody></table>
</div></details></section>
<section id="summary"><h2>5. Summary</h2><ul><li><p>Bytes fall by 2.</p></li></ul></section>
<section id="further"><h2>6. Further reading</h2><ul><li><p>A paper.</p></li></ul></section>
<section id="now"><h2>7. You can now do</h2><ul><li><p>Question (a).</p></li></ul></section>
"""

PICTURE = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="360" height="245" viewBox="0 0 360 245">'
    '<path d="M0 0L360 245" stroke="#000"/></svg>'
)


def write_site(root: Path, chapter: str = CHAPTER) -> Path:
    """Write contents, sources and built site of such a book into a folder, and return the folder of the site."""
    site = root / "_build" / "html"
    pages = {
        "book/index": ("A book", '<p>Read <a class="reference internal" href="memory/cache.html">it</a>.</p>'),
        "book/memory/cache": ("Caches", chapter),
        "book/reference/bibliography": ("Bibliography", '<div class="citation" id="id7"><p>Lam, 1991.</p></div>'),
        "book/about/instructor": ("For instructors", "<p>Plans.</p>"),
    }
    for docname, (title, body) in pages.items():
        page = site / f"{docname}.html"
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(PAGE.format(title=title, name=page.stem, body=body), encoding="utf-8")
        source = root / f"{docname}.md"
        source.parent.mkdir(parents=True, exist_ok=True)
        source.write_text(f"# {title}\n", encoding="utf-8")
    chapter_source = (
        '---\nkernelspec:\n  name: python3\n---\n\n# Caches\n\n```\nchapter = start_chapter("cache")\n```\n'
    )
    (root / "book" / "memory" / "cache.md").write_text(chapter_source, encoding="utf-8")
    (root / "_toc.yml").write_text(TOC, encoding="utf-8")
    config = "title: A Book\nauthor: The authors\nrepository:\n  url: https://github.com/a/b\n  branch: main\n"
    (root / "_config.yml").write_text(config, encoding="utf-8")
    (root / "pyproject.toml").write_text('[project]\nversion = "1.0"\n', encoding="utf-8")
    (site / "_images").mkdir()
    (site / "_images" / "bytes.svg").write_text(PICTURE, encoding="utf-8")
    (site / "_static").mkdir()
    (site / "_static" / "pygments.css").write_text("", encoding="utf-8")
    (site / "_static" / "mathjax").symlink_to(REPOSITORY / "book" / "_static" / "mathjax")
    return site
