"""A browser for the tests of a module, and a page in it for each test: skipped where there is none."""

import pytest

from tests.tools import browser, pictures

try:
    from playwright.sync_api import expect
except ImportError:  # then every test in a browser is skipped
    pass
else:
    expect.set_options(timeout=1000 * browser.PATIENCE)


@pytest.fixture(scope="module")
def chromium():
    browser.skip(browser.lacking())
    with browser.chromium() as found:
        yield found


@pytest.fixture(scope="module")
def sheet(chromium, tmp_path_factory):
    with pictures.sheet(chromium, tmp_path_factory.mktemp("sheet")) as found:
        yield found


@pytest.fixture
def page(sheet):
    """A function that opens a page of fragments, and afterwards finds no complaint and no request in it."""
    sheet.complaints.clear()
    yield sheet.open
    assert sheet.complaints == []
