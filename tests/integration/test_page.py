"""The page in a real Airflow, by a real browser, before a real Kafka and MirrorMaker 2."""

import re
import time
from collections.abc import Iterator
from urllib.parse import urlencode

import httpx
import pytest
from fastapi.routing import APIRoute
from playwright.sync_api import Browser, Page, expect

from airflow_mm2_offsets.plugins.page.app import make_page
from airflow_mm2_offsets.plugins.page.plan_table import PAGE_ROWS
from stack.airflow import ADMIN, VIEWER, Airflow
from stack.waiting import wait_until
from tests.integration import page_browser
from tests.integration.airflow_dags.page_world import MARKUP, ROWS
from tests.integration.contract import SECOND, Mirrored
from tests.integration.page_browser import framed, log_in, serious_findings

PAGE = "/mm2-offsets/page"
DAG = "page_world"
REFUSED = 7777
"""The partition of the big plan that has no answer."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with page_browser.browser() as made:
        yield made


@pytest.fixture(scope="module")
def run_id(browser: Browser, airflow: Airflow, mirrored_topic: Mirrored) -> str:  # noqa: ARG001 - without one, nothing is started
    """Return a run whose check has failed, and whose report says so."""
    positions = {mirrored_topic.topic: {str(SECOND): 30}}
    made = airflow.api.trigger(DAG, {"positions": positions})
    wait_until(lambda: airflow.api.state(DAG, made) == "failed", "the run")
    return made


@pytest.fixture(scope="module")
def page(browser: Browser, airflow: Airflow) -> Page:
    return log_in(browser, airflow, ADMIN)


def task_page(name: str, run: str, task_id: str, **more: str) -> str:
    query = {"dag_id": DAG, "run_id": run, "task_id": task_id, **more}
    return f"{PAGE}/{name}?{urlencode(query)}"


@pytest.mark.usefixtures("run_id")
def test_the_menu_leads_to_every_page(page: Page) -> None:
    """From Airflow's menu over the jobs to a job, a report and a connection, by clicks alone."""
    page.goto("/")
    page.get_by_role("button", name="Browse").click()
    page.get_by_role("menuitem", name="MirrorMaker 2").click()
    frame = framed(page)
    expect(frame.get_by_role("row").filter(has_text="clicks")).to_contain_text("moved")
    unread = frame.get_by_role("row").filter(has=frame.get_by_role("link", name="lost"))
    expect(unread).to_contain_text("not known")
    frame.get_by_role("link", name="clicks").click()
    expect(frame.locator("h1")).to_contain_text("Job clicks")
    expect(frame.get_by_role("row").filter(has_text="hand over")).to_contain_text(MARKUP)
    frame.get_by_role("link", name="Jobs").click()
    row = frame.get_by_role("row").filter(has_text="orders")
    row.get_by_role("link", name="not ready").click()
    expect(frame.locator("h1")).to_contain_text("Readiness")
    expect(frame.get_by_role("row").filter(has_text="checkpoint readable")).to_contain_text(
        "/orders/checkpoint"
    )
    frame.get_by_role("link", name="Connections").click()
    frame.get_by_role("link", name="mm2_default").click()
    expect(frame.locator("h1")).to_have_text("Connection mm2_default")


def test_a_connection_is_plotted(page: Page, mirrored_topic: Mirrored) -> None:
    """Each partition with syncs has a line of its shift and bars of its syncs."""
    page.goto(f"{PAGE}/connection?conn_id=mm2_default&text={mirrored_topic.topic}")
    row = page.get_by_role("row").filter(has_text=f"{mirrored_topic.topic}[{SECOND}]")
    expect(row.get_by_role("img", name="Shift of")).to_be_visible()
    expect(row.get_by_role("img", name="Offset syncs of")).to_be_visible()
    points = row.locator("polyline").get_attribute("points")
    assert points is not None
    assert len(points.split()) > 1


def test_the_translator_answers_the_truth(page: Page, mirrored_topic: Mirrored) -> None:
    """By the form and the keyboard alone; the true position lies within the bounds."""
    page.goto(f"{PAGE}/translate")
    page.get_by_label("Topic on the source").fill(mirrored_topic.topic)
    page.keyboard.press("Tab")
    page.keyboard.type(str(SECOND))
    page.keyboard.press("Tab")
    page.keyboard.type("30")
    page.keyboard.press("Enter")
    answer = page.get_by_role("region", name="Answer")
    expect(answer).to_be_visible()
    low, high = (
        int(re.findall(rf"{bound}\s+(\d+)", answer.inner_text())[0]) for bound in ("Low", "High")
    )
    assert low <= mirrored_topic.truth(SECOND, 30) <= high


def test_a_wrong_position_is_named(page: Page, mirrored_topic: Mirrored) -> None:
    """Bad input gets one sentence that names the value, and the form keeps what was typed."""
    query = urlencode({"topic": mirrored_topic.topic, "partition": "0", "position": "-2"})
    answer = page.goto(f"{PAGE}/translate?{query}")
    assert answer is not None
    assert answer.status == 400
    expect(page.get_by_role("alert")).to_contain_text("'-2' is not a position")
    expect(page.get_by_label("Position")).to_have_value("-2")


def test_an_extra_link_opens_the_plan(page: Page, run_id: str) -> None:
    """The task's button leads to its plan, whose tab shows the position that was asked."""
    page.goto(f"/dags/{DAG}/runs/{run_id}/tasks/translate")
    page.get_by_role("link", name="Details").click()
    # Some releases of Airflow open it in a new tab.
    page.goto(page.get_by_role("link", name="Failover plan").evaluate("link => link.href"))
    expect(page.locator("h1")).to_contain_text("Failover plan")
    expect(page.get_by_role("row").nth(1)).to_contain_text("30")


def test_the_tab_of_a_run_shows_the_status_of_its_move(page: Page, run_id: str) -> None:
    """What failed, what comes next, and each task, with a way to the plan."""
    page.goto(f"/dags/{DAG}/runs/{run_id}")
    page.get_by_role("link", name="Failover", exact=True).click()
    frame = framed(page)
    expect(frame.locator("main")).to_contain_text("not begun")
    expect(frame.get_by_role("alert")).to_contain_text("check: the move can't begin")
    expect(frame.locator("main")).to_contain_text("Next: Nothing was changed")
    expect(frame.get_by_role("row").filter(has_text="translate").first).to_contain_text("success")
    frame.get_by_role("link", name="translate", exact=True).click()
    expect(frame.locator("h1")).to_contain_text("Failover plan")


def test_a_link_into_airflow_opens_around_the_frame(page: Page, run_id: str) -> None:
    """Airflow is not shown inside its own frame; the button of a task leads back to the tab."""
    page.goto(f"/dags/{DAG}/runs/{run_id}")
    page.get_by_role("link", name="Failover", exact=True).click()
    framed(page).get_by_role("alert").get_by_role("link", name="Log").click()
    page.wait_for_url(f"**/dags/{DAG}/runs/*/tasks/check*")
    page.goto(f"/dags/{DAG}/runs/{run_id}/tasks/report")
    page.get_by_role("link", name="Details").click()
    page.get_by_role("link", name="Failover report").click()
    expect(framed(page).locator("h1")).to_contain_text("Job orders")


def test_ten_thousand_rows_are_filtered_and_sorted(page: Page, run_id: str) -> None:
    """A page of them comes within seconds; the refused one is first, filters find one row."""
    began = time.monotonic()
    page.goto(task_page("plan", run_id, "big"))
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(PAGE_ROWS)
    assert time.monotonic() - began < 15
    expect(rows.first).to_contain_text(f"wide[{REFUSED}]")
    page.get_by_label("Status").select_option("refused")
    page.get_by_role("button", name="Show").click()
    expect(rows).to_have_count(1)
    page.goto(task_page("plan", run_id, "big", sort="partition"))
    page.get_by_role("link", name="Next page").click()
    expect(rows.first).to_contain_text(f"wide[{PAGE_ROWS}]")
    expect(page.locator("caption").first).to_contain_text(f"of {ROWS}")


def test_markup_stays_text(page: Page, run_id: str) -> None:
    """What stands in a plan or in a URL is shown, and never run."""
    page.goto(task_page("plan", run_id, "big", text="wide[4242]"))
    expect(page.locator("tbody tr")).to_contain_text(MARKUP)
    assert "owned" not in page.title()
    for address in (
        f"{PAGE}/connection?{urlencode({'conn_id': MARKUP})}",
        f"{PAGE}/translate?{urlencode({'topic': MARKUP, 'partition': '0', 'position': '1'})}",
        task_page("plan", run_id, "big", text=MARKUP),
        task_page("plan", run_id, MARKUP),
        f"{PAGE}/plan?{urlencode({'dag_id': DAG, 'run_id': MARKUP, 'task_id': 'big'})}",
    ):
        page.goto(address)
        expect(page.locator("h1")).to_be_visible()
        assert "owned" not in page.title(), address
        assert page.locator("main script, main img").count() == 0, address


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_bars_the_way(browser: Browser, airflow: Airflow, run_id: str, scheme: str) -> None:
    """axe-core finds nothing serious on any page, in light and in dark."""
    page = log_in(browser, airflow, ADMIN, scheme=scheme)
    pages = {
        "jobs": f"{PAGE}/",
        "job": f"{PAGE}/job?name=clicks",
        "connections": f"{PAGE}/connections",
        "connection": f"{PAGE}/connection?conn_id=mm2_default",
        "translator": f"{PAGE}/translate",
        "plan": task_page("plan", run_id, "big"),
        "readiness": task_page("readiness", run_id, "check"),
        "run": task_page("run", run_id, "report"),
        "error": f"{PAGE}/connection?conn_id=missing",
    }
    found = {}
    for name, address in pages.items():
        page.goto(address)
        found[name] = serious_findings(page)
    assert found == {name: [] for name in pages}
    page.context.close()


def test_nobody_sees_more_than_airflow_lets_them(
    browser: Browser, airflow: Airflow, run_id: str
) -> None:
    """A stranger is sent to the login on every route; a viewer is refused what he may not read."""
    routes = [
        route.path.replace("{name}", "page.css")
        for route in make_page(None).routes  # type: ignore[arg-type]
        if isinstance(route, APIRoute)
    ]
    assert len(routes) > 5
    query = {"conn_id": "mm2_default", "dag_id": DAG, "run_id": run_id, "task_id": "translate"}
    query["name"] = "clicks"
    with httpx.Client(base_url=f"{airflow.url}{PAGE}") as stranger:
        for route in routes:
            answer = stranger.get(route, params=query)
            assert answer.status_code == 401, route
            assert "Log in to Airflow" in answer.text
            assert answer.text.count("<td") == 0
    viewer = log_in(browser, airflow, VIEWER)
    for route in ("connection", "translate"):
        refused = viewer.goto(f"{PAGE}/{route}?conn_id=mm2_default")
        assert refused is not None
        assert refused.status == 403
        expect(viewer.get_by_role("alert")).to_contain_text("you may not read connection")
    viewer.context.close()


@pytest.mark.usefixtures("run_id")
def test_answers_allow_nothing_from_elsewhere(airflow: Airflow) -> None:
    """No script, style, frame or form of another origin, and no copy in a cache."""
    headers = {"Authorization": f"Bearer {airflow.token(ADMIN)}"}
    with httpx.Client(base_url=f"{airflow.url}{PAGE}", headers=headers) as client:
        for path in ("/", "/translate", "/static/page.css", "/nothing"):
            answer = client.get(path)
            policy = answer.headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            assert "frame-ancestors 'self'" in policy
            assert "no-store" in answer.headers["cache-control"]
        for method in ("POST", "PUT", "DELETE", "PATCH"):
            assert client.request(method, "/translate").status_code == 405, method


def test_a_cleared_task_shows_each_try(page: Page, airflow: Airflow, run_id: str) -> None:
    """Airflow keeps the first try apart, and leaves its times in the row of the second."""
    airflow.api.clear(DAG, run_id, "big", downstream=False)
    page.goto(task_page("run", run_id, "report"))
    tries = page.get_by_role("rowheader", name="big", exact=True)
    wait_until(lambda: airflow.api.tasks(DAG, run_id)["big"].state == "success", "the second try")
    page.goto(task_page("run", run_id, "report"))
    expect(tries).to_have_count(2)
    for number in (1, 2):
        expect(page.get_by_role("link", name=f"Log of big, try {number}")).to_be_visible()
