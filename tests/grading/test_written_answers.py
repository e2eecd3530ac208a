from html.parser import HTMLParser

import pytest
from nbconvert.filters import markdown2html

from mlsys.grading.written_answers import quoted

TEXTS = [
    "<script>alert(1)</script>",
    "</pre><script>alert(1)</script>\n\n</pre>\n\n<img src=x onerror=alert(1)>",
    "one\n\n[two](javascript:alert(1))\n\n![three](http://elsewhere.example/x.png)",
    "$$\n\\href{javascript:alert(1)}{x}\n$$\n\n$a < b$",
    "`</pre>` and ```\n</pre>\n```",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "# heading\n\n- a\n- b\n\n    code",
]


class Page(HTMLParser):
    """The elements of a page, and its text."""

    def __init__(self):
        super().__init__()
        self.tags, self.text = [], ""

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)

    def handle_data(self, data):
        self.text += data


@pytest.mark.parametrize("text", TEXTS)
def test_quoted_text_is_shown_as_it_stands_and_nothing_else(text):
    page = Page()
    page.feed(markdown2html(quoted(text)))
    assert page.tags == ["pre"]
    assert page.text.strip() == text.strip()
