"""The page at `/` in a real Chromium: `make test-page`. A recorded lifetime stands in for a server."""

import shutil

import pytest

import hasten
from hasten.serve.lifetime import Answered, Lifetime, recorded_page

webdriver = pytest.importorskip("selenium.webdriver", reason="Install selenium to test the page.")
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402

pytestmark = pytest.mark.skipif(
    shutil.which("chromium") is None or shutil.which("chromedriver") is None, reason="Chromium is not installed."
)
HOSTILE = '</script><img src=x onerror="window.hacked=1"><script>window.hacked=1</script> \u202eevil \x1b[31m'
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --hide-scrollbars"
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for flag in [*FLAGS.split(), f"--user-data-dir={tmp_path_factory.mktemp('browser')}"]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))
    yield driver
    driver.quit()


def a_trace():
    schema = hasten.Schema()
    kind = schema.variable("kind", ["a", HOSTILE])
    differ = schema.factor("differ", one=kind, other=kind).forbid(one="a", other="a")
    shape = schema.structure(["kind"] * 3, {differ: [(0, 1), (1, 2)]})
    return hasten.greedy().trace(shape.problem([[0.0, 1.0]] * 3), names=[HOSTILE, "second", "third"])


def recorded(trust):
    """A lifetime of 1,000 answers: the student takes over after 400; answers 801 to 850 are suspect."""
    clock = iter(range(10**6))
    life = Lifetime({"name": HOSTILE, "kind": "cascade"}, lambda: trust, clock=lambda: float(next(clock)))
    for n in range(1000):
        called = n < 400 or n % 10 == 0
        source, reason = ("black box", "Nothing is learned yet.") if called else ("student", "")
        agreed = (n < 800 or n % 20 == 0) if called and n >= 400 else None
        life.answered([Answered(HOSTILE, HOSTILE, source, 0.1 if called else 1e-3, called, agreed, reason, 0.5)])
        if n == 399:
            life.mark("version", "v1", "v1 answers from now on.")
    return life.state()


@pytest.fixture
def page(browser, tmp_path):
    def opened(state, width=1200, dark=False):
        browser.execute_cdp_cmd(
            "Emulation.setEmulatedMedia",
            {"features": [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]},
        )
        size = {"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        file = tmp_path / "page.html"
        file.write_text(recorded_page(state), encoding="utf-8")
        browser.get(file.as_uri())
        return browser

    yield opened
    assert [each for each in browser.get_log("browser") if each["level"] == "SEVERE"] == []


DRIFT = {"trusted": False, "allowed": 0.95, "suspect": [801, 850], "alarm": f"{HOSTILE} may be wrong."}


def test_numbers_of_the_state_stand_on_the_page(page):
    state = recorded({"trusted": True, "allowed": 0.95})
    shown = page(state)
    tiles = [each.text for each in shown.find_elements(By.CSS_SELECTOR, "#tiles b")]
    n_called = 400 + 60
    assert tiles[:3] == ["1,000", f"{100 * (1000 - n_called) / 1000:.1f}%", f"{1000 - n_called}"]
    assert len(shown.find_elements(By.CSS_SELECTOR, "#charts figure")) == 4
    assert len(shown.find_elements(By.CSS_SELECTOR, "#recent tr")) == len(state["recent"])
    assert shown.find_element(By.ID, "status").text == "Trusted"
    assert not shown.find_element(By.ID, "alarm").is_displayed()
    assert "v1" in shown.find_element(By.CSS_SELECTOR, "#charts .mark-label").text


def test_answers_that_need_no_trust_are_counted_by_their_proofs(page):
    life = Lifetime({"name": "proofs", "kind": "program"})
    life.answered([Answered("", "", "bound", 1e-3, proved=n % 4 > 0) for n in range(100)])
    shown = page(life.state())
    assert shown.find_element(By.ID, "status").text == "Serving"
    assert "75.0%\nproved optimal" in shown.find_element(By.ID, "tiles").text
    captions = [each.text.split("\n")[0] for each in shown.find_elements(By.CSS_SELECTOR, "#charts figcaption")]
    assert captions[1].startswith("Proved")


def test_agreement_at_a_glance_is_that_of_late(page):
    life = Lifetime({}, lambda: {"trusted": True, "allowed": 0.9})
    life.answered([Answered("", "", "student", 1e-3, True, agreed=n >= 500) for n in range(1000)])
    tiles = page(life.state()).find_element(By.ID, "tiles").text
    assert "100%\nof the last 50 audits agree" in tiles


def test_a_drift_is_an_alarm_with_its_stretch(page):
    shown = page(recorded({**DRIFT, "alarm": "It changed."}))
    alarm = shown.find_element(By.ID, "alarm")
    assert alarm.is_displayed()
    assert "Answers 801 to 850 may be wrong." in alarm.text
    assert len(shown.find_elements(By.CSS_SELECTOR, "#charts .suspect")) == 4


def test_charts_are_read_with_the_keyboard(page):
    state = recorded({"trusted": True})
    shown = page(state)
    charts, reading = shown.find_element(By.ID, "charts"), shown.find_element(By.ID, "reading")
    charts.send_keys(Keys.ARROW_LEFT)
    last, first = state["windows"][-1], state["windows"][0]
    assert reading.text.startswith(f"Answers {last['first']} to {last['last']:,}: ")
    charts.send_keys(Keys.HOME)
    assert reading.text.startswith(f"Answers {first['first']} to {first['last']}: black box 50;")


@pytest.mark.parametrize("width", [400, 800, 1200])
def test_nothing_is_wider_than_the_screen(page, width):
    shown = page(recorded(DRIFT), width)
    assert shown.execute_script("return document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("dark", [False, True])
def test_words_stand_out_by_day_and_by_night(page, dark):
    shown = page(recorded(DRIFT), dark=dark)
    colours = """
        const light = (words) => {
            const [r, g, b] = words.match(/[\\d.]+/g).map((part) => part / 255)
                .map((part) => part <= .04045 ? part / 12.92 : ((part + .055) / 1.055) ** 2.4);
            return .2126 * r + .7152 * g + .0722 * b;
        };
        const ground = (node) => {
            const found = getComputedStyle(node).backgroundColor;
            return found.startsWith("rgba(0, 0, 0, 0") ? ground(node.parentElement) : found;
        };
        return [...document.querySelectorAll("h1, p, b, span, td, th, figcaption, small, strong")]
            .filter((node) => node.checkVisibility() && node.textContent.trim())
            .map((node) => {
                const [one, other] = [light(getComputedStyle(node).color), light(ground(node))].sort((a, b) => b - a);
                return [(one + .05) / (other + .05), node.outerHTML.slice(0, 80)];
            });
    """
    contrasts = shown.execute_script(colours)
    assert min(contrasts) >= [4.5], min(contrasts)
    ground = shown.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(20, 23, 27)") == dark


def test_hostile_words_are_words(page):
    state = recorded(DRIFT)
    state["recent"][0]["explanation"] = {"html": a_trace()._repr_html_()}
    shown = page(state)
    assert "<img src=x" in shown.find_element(By.CSS_SELECTOR, "#recent td:nth-child(2)").text
    shown.find_element(By.CSS_SELECTOR, "#recent button").click()
    assert shown.find_element(By.ID, "explained").is_displayed()
    assert shown.execute_script("return window.hacked === undefined && document.images.length === 0")
    text = shown.execute_script("return document.body.innerText")
    assert "\u202e" not in text
    assert "\x1b" not in text


def test_a_search_is_stepped_through(page):
    state = recorded(DRIFT)
    state["recent"][0]["explanation"] = {"html": a_trace()._repr_html_()}
    shown = page(state)
    shown.find_element(By.CSS_SELECTOR, "#recent button").click()
    told = shown.find_element(By.CSS_SELECTOR, "#explained .steps span")
    back, following, both = shown.find_elements(By.CSS_SELECTOR, "#explained .steps button")
    assert (told.text, back.is_enabled()) == ("Step 1 of 3", False)
    following.click()
    following.send_keys(Keys.ARROW_RIGHT)
    cards = shown.find_elements(By.CSS_SELECTOR, "#explained .cards figure")
    assert told.text == "Step 3 of 3"
    assert [each.is_displayed() for each in cards] == [False, False, True]
    both.click()
    assert all(each.is_displayed() for each in cards)


def test_a_lifetime_that_just_began_says_so(page):
    shown = page(Lifetime({"name": "new", "kind": "speedup"}).state())
    assert "No answers yet" in shown.find_element(By.ID, "charts").text
    assert shown.find_element(By.ID, "status").text == "Serving"


def test_the_page_of_a_real_server(browser, tmp_path):
    pytest.importorskip("httptools")
    from selenium.webdriver.support.ui import WebDriverWait
    from servers import Server

    (tmp_path / "shop.lp").write_text(
        "Minimize\n obj: 3 a + 2 b\nSubject To\n r: a + b >= 1\nBinary\n a b\nEnd\n", encoding="utf-8"
    )
    server = Server(tmp_path, "shop.lp")
    try:
        browser.get(f"http://127.0.0.1:{server.port}/")
        wait = WebDriverWait(browser, 30)
        assert server.post("/predict", {"objective": {"a": 1.0, "b": 7.0}})[0] == 200
        wait.until(lambda _: "a" in browser.find_element(By.ID, "recent").text)
        browser.find_element(By.CSS_SELECTOR, "#recent button").click()
        wait.until(lambda _: browser.find_elements(By.CSS_SELECTOR, "#explained[open] svg"))
        browser.find_element(By.CSS_SELECTOR, "#explained button").click()
        browser.find_element(By.ID, "input").send_keys('{"objective": {"a": 7.0, "b": 1.0}}')
        browser.find_element(By.CSS_SELECTOR, "#try button").click()
        wait.until(lambda _: "bound" in browser.find_element(By.ID, "tried").text)
        browser.find_element(By.ID, "input").clear()
        browser.find_element(By.ID, "input").send_keys('{"objective": {"nobody": 7.0}}')
        browser.find_element(By.CSS_SELECTOR, "#try button").click()
        wait.until(lambda _: "nobody" in browser.find_element(By.ID, "tried").text)
    finally:
        assert server.end() == 0
        severe = [each for each in browser.get_log("browser") if each["level"] == "SEVERE"]
    assert all("400" in each["message"] or "ERR_CONNECTION_REFUSED" in each["message"] for each in severe)
