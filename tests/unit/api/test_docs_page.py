"""The page that describes the routes, for people."""

import base64
import hashlib
from collections import Counter
from html.parser import HTMLParser
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from airflow_mm2_offsets.api.docs_page import docs_page
from airflow_mm2_offsets.config import ServeSettings
from tests.unit.api.api_harness import BASE, ApiHarness, Direct

MARKUP = "<script>alert('x')</script>&\""
VOID = frozenset({"meta", "br"})


class Page(HTMLParser):
    """A page, parsed: its elements, its anchors, where it leads, and its texts."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.ids: list[str] = []
        self.references: list[str] = []
        self.handlers: list[str] = []
        self.texts: dict[str, list[str]] = {}
        self.open: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            elif name in {"href", "src", "action", "data", "srcset"}:
                self.references.append(value or "")
            elif name.startswith("on") or name == "style":
                self.handlers.append(name)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.setdefault(self.open[-1] if self.open else "", []).append(data)


@pytest.fixture
def answer(api: ApiHarness) -> httpx.Response:
    return api.client.get("/docs")


@pytest.fixture
def page(answer: httpx.Response) -> Page:
    return Page(answer.text)


def test_it_names_each_route_and_model(api: ApiHarness, page: Page) -> None:
    """Also the models that stand only within an answer, such as the problem."""
    description = api.client.get("/openapi.json").json()
    routes = [
        f"{method.upper()} {path}" for path, each in description["paths"].items() for method in each
    ]
    titles = page.texts["h3"]
    assert titles[: len(routes)] == routes
    problem = ["FieldError", "ProblemBody"]
    assert titles[len(routes) :] == sorted([*description["components"]["schemas"], *problem])
    fields = {each.removeprefix("Fields of ") for each in page.texts["caption"]}
    assert {"PlanRequest", "TranslateResponse", *problem} <= fields


def test_it_leads_nowhere_else(page: Page) -> None:
    """Each link stays on the page or beside it, and its anchor is there, once."""
    assert page.references
    assert {each for each in page.references if not each.startswith("#")} == {"openapi.json"}
    assert {each[1:] for each in page.references if each.startswith("#")} <= {*page.ids}
    assert len(page.ids) == len({*page.ids})


def test_its_policy_allows_its_style_alone(answer: httpx.Response, page: Page) -> None:
    """It has no script and no style but the one of which the policy has the hash."""
    style = answer.text.partition("<style>")[2].partition("</style>")[0]
    assert style
    policy = answer.headers["content-security-policy"].split("; ")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert policy[:2] == ["default-src 'none'", f"style-src 'sha256-{digest}'"]
    assert page.tags["style"] == 1
    assert not page.handlers
    assert not {"script", "link", "img", "iframe", "form", "base"} & {*page.tags}
    assert "url(" not in style
    assert "@import" not in style


def test_mounted_it_names_the_paths_with_their_prefix(api: ApiHarness) -> None:
    """As inside Airflow; its link to the description stays within the mount."""
    outer = FastAPI(openapi_url=None)
    outer.mount("/mm2-offsets", api.app)
    client = httpx.Client(transport=Direct(outer), base_url="http://test")
    page = Page(client.get("/mm2-offsets/docs").text)
    assert f"GET /mm2-offsets{BASE}/translate" in page.texts["h3"]
    assert "openapi.json" in page.references
    assert client.get("/mm2-offsets/openapi.json").status_code == 200


def test_any_text_is_a_text() -> None:
    """Markup in any part of a description is shown, not obeyed."""
    models: dict[str, Any] = {
        MARKUP: {
            "description": MARKUP,
            "required": [MARKUP],
            "properties": {
                MARKUP: {"type": MARKUP, "description": MARKUP, "pattern": MARKUP},
                "list": {"type": "array", "items": {"$ref": f"#/{MARKUP}"}},
                "map": {"type": "object", "additionalProperties": {"const": MARKUP}},
            },
        },
        "choice": {"enum": [MARKUP], "default": MARKUP, "examples": [MARKUP]},
    }
    operation = {
        "operationId": MARKUP,
        "description": MARKUP,
        "parameters": [{"name": MARKUP, "schema": models["choice"]}],
        "requestBody": {"content": {MARKUP: {"schema": models["choice"]}}},
        "responses": {MARKUP: {"description": MARKUP, "content": {MARKUP: {"schema": {}}}}},
    }
    description = {
        "info": {"title": MARKUP, "version": MARKUP, "summary": MARKUP},
        "paths": {MARKUP: {MARKUP: operation}},
        "components": {"schemas": models, "securitySchemes": {"x": {"type": MARKUP}}},
    }
    html = docs_page(description, prefix=MARKUP)
    page = Page(html)
    assert "script" not in page.tags
    shown = sum(MARKUP in text for texts in page.texts.values() for text in texts)
    assert shown == 20


def test_it_says_what_a_field_may_hold(answer: httpx.Response) -> None:
    """Types, limits, defaults, examples and the login, each in HTML as people read it."""
    for part in (
        '<a href="#Strategy">Strategy</a>',
        'list of <a href="#BatchItem">BatchItem</a>',
        "object of object of integer or string",
        "<code>&quot;exact&quot;</code> or <code>&quot;bounded&quot;</code>",
        "no: <code>&quot;safe&quot;</code>",
        "at least <code>0</code>; at most <code>2147483647</code>",
        "Example: <code>&quot;source.orders&quot;</code>",
    ):
        assert part in answer.text
    assert "Login:" not in answer.text
    user = ServeSettings(username="user", password="pass")  # noqa: S106 - a test's own
    secured = ApiHarness(user).client.get("/docs", auth=("user", "pass"))
    assert "<p>Login: <code>bearer</code> or <code>basic</code>.</p>" in secured.text
