"""Settings from the environment, what an answer depends on, and what tokens cost."""

from __future__ import annotations

import pytest

from cases.errors import InputError
from harness.llm.settings import (
    KEY,
    PREFIX,
    ModelSettings,
    api_key,
    default_request,
    from_environment,
)
from harness.llm.usage import Usage, usage_of

GIVEN = {f"{PREFIX}BASE_URL": "https://models.example/v1", f"{PREFIX}MODEL": "m"}


def test_every_field_is_a_variable() -> None:
    numbers = dict.fromkeys(ModelSettings.model_fields, "7") | {"request": '{"seed": 1}'}
    fields = {f"{PREFIX}{name.upper()}": value for name, value in numbers.items()}
    settings = from_environment(fields | GIVEN)
    assert settings.request == {"seed": 1}
    rest = set(ModelSettings.model_fields) - {"base_url", "model", "request"}
    assert {getattr(settings, name) for name in rest} == {7}


def test_empty_variable_is_as_good_as_none() -> None:
    assert from_environment(GIVEN | {f"{PREFIX}MAX_STEPS": ""}).max_steps == 20


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("BASE_URL", "", "must be set"),
        ("MODEL", "", "must be set"),
        ("BASE_URL", "models.example/v1", "must be http://host/path"),
        ("BASE_URL", "ftp://models.example", "must be http://host/path"),
        ("BASE_URL", "https://me:secret@models.example", "must hold neither user"),
        ("BASE_URL", "https://models.example?key=secret", "must hold neither user"),
        ("MAX_STEPS", "0", "greater than 0"),
        ("MAX_TOKENS", "many", "valid integer"),
        ("TIMEOUT_S", "0", "greater than 0"),
        ("REQUEST", "{", "must be JSON"),
        ("REQUEST", "[1]", "valid dictionary"),
    ],
)
def test_wrong_variable_is_named(name: str, value: str, says: str) -> None:
    with pytest.raises(InputError, match=says) as error:
        from_environment(GIVEN | {PREFIX + name: value})
    assert str(error.value).startswith(PREFIX + name)
    assert "secret" not in str(error.value)


def test_key_may_be_absent() -> None:
    assert (api_key({}), api_key({KEY: " k\n"})) == ("", "k")


@pytest.mark.parametrize("key", ["se\ncret", "se cret", "secr\u00e9t"])
def test_key_that_no_header_can_hold_is_not_shown(key: str) -> None:
    with pytest.raises(InputError, match="must be printable ASCII") as error:
        api_key({KEY: key})
    assert "cr" not in str(error.value).removeprefix(KEY)


def test_answers_depend_on_the_model_and_not_on_prices_or_patience() -> None:
    settings = from_environment(GIVEN)
    for change in ({"price_input": 1.0}, {"timeout_s": 1.0}, {"attempts": 1}, {"max_cost": 1.0}):
        assert settings.model_copy(update=change).digest() == settings.digest()
    for change in ({"model": "n"}, {"request": {"seed": 2}}, {"max_steps": 3}, {"base_url": "h"}):
        assert settings.model_copy(update=change).digest() != settings.digest()


def test_defaults_of_a_request_can_be_changed_and_left_out() -> None:
    settings = from_environment(
        GIVEN | {f"{PREFIX}REQUEST": '{"temperature": null, "max_tokens": 9, "seed": 1}'}
    )
    assert default_request(settings) == {"model": "m", "max_tokens": 9, "seed": 1}


def test_cost_by_hand() -> None:
    """1,000 prompt tokens of which 400 cached, 100 out: (600 * 3 + 400 * 0.3 + 100 * 15) / 1e6."""
    used = Usage(prompt_tokens=1000, cached_prompt_tokens=400, completion_tokens=100)
    settings = from_environment(GIVEN)
    assert used.cost(settings) is None
    prices = {"price_input": 3.0, "price_output": 15.0}
    assert used.cost(settings.model_copy(update=prices)) == pytest.approx(0.0045)
    cached = prices | {"price_cached_input": 0.3}
    assert used.cost(settings.model_copy(update=cached)) == pytest.approx(0.00342)


@pytest.mark.parametrize("stated", [None, 5, {}, {"prompt_tokens": "5"}, {"prompt_tokens": -1}])
def test_usage_that_is_not_stated_is_estimated(stated: object) -> None:
    """A token for four characters: 40 of the request make 11, 14 of the message 4."""
    reply = {"usage": stated, "choices": [{"message": {"a": "12345"}}]}
    found = usage_of(reply, {"b": "x" * 31})
    assert (found.prompt_tokens, found.completion_tokens, found.estimated) == (11, 4, True)
