"""A browser that is logged in to Airflow, and what axe finds on its pages."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, FrameLocator, Page, expect, sync_playwright

from stack.airflow import Airflow

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
SECONDS = 120
"""On a busy machine a page takes its time."""
_SERIOUS = {"serious", "critical"}


@contextmanager
def browser() -> Iterator[Browser]:
    """Yield a browser of this machine; without one, skip."""
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        pytest.skip(f"no browser is installed: {', '.join(PROGRAMS)}")
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        try:
            yield made
        finally:
            made.close()


def log_in(made: Browser, airflow: Airflow, user: str, *, scheme: str = "light") -> Page:
    """Return a page of a new context, whose user has logged in by Airflow's form."""
    context = made.new_context(
        base_url=airflow.url,
        viewport={"width": 1440, "height": 900},
        color_scheme="dark" if scheme == "dark" else "light",
    )
    page = context.new_page()
    page.set_default_timeout(SECONDS * 1000)
    page.goto("/auth/login/")
    page.fill("input[name=username]", user)
    page.fill("input[name=password]", airflow.password(user))
    page.click("button[type=submit]")
    page.wait_for_url(lambda url: "/auth/login" not in url)
    return page


def framed(page: Page) -> FrameLocator:
    """Return the frame in which Airflow shows our page, once it is there."""
    frame = page.frame_locator("iframe[src*='mm2-offsets/page']")
    expect(frame.locator("h1")).to_be_visible(timeout=SECONDS * 1000)
    return frame


def serious_findings(page: Page) -> list[str]:
    """Return what axe-core finds on a page, and calls serious or critical."""
    result = Axe().run(page)
    return [
        f"{each['id']}: {each['help']} ({each['nodes'][0]['html'][:200]})"
        for each in result.response["violations"]
        if each["impact"] in _SERIOUS
    ]
