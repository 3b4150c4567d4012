"""URLs as Go's parser takes them; each line was seen there."""

import pytest

from jsctl.auth.urls import UrlProblem, parse_url


@pytest.mark.parametrize(
    ("text", "written", "hostname"),
    [
        ("", "", ""),
        ("NATS://a:4222", "nats://a:4222", "a"),
        ("nats://", "nats:", ""),
        ("nats://a:", "nats://a:", "a"),
        ("nats://a:b:1", "nats://a:b:1", "a:b"),
        ("nats://u:p@[::1]:4222", "nats://u:p@[::1]:4222", "::1"),
        ("http://[fe80::1%25en0]/", "http://[fe80::1%25en0]/", "fe80::1%en0"),
        ("http://h/a b*?q=ä b#", "http://h/a%20b%2A?q=ä b", "h"),
        ("http://h/%41*#a b?!", "http://h/%41*#a%20b?!", "h"),
        ("http://ä%C3%B6", "http://%C3%A4%C3%B6", "äö"),
        ("a:4222", "a:4222", ""),
        ("x:/y", "x:/y", ""),
        ("//h/p", "//h/p", "h"),
        ("///p", "///p", ""),
        ("host", "host", ""),
        ("?a", "?a", ""),
    ],
)
def test_a_url_is_written_in_its_normal_form(text: str, written: str, hostname: str) -> None:
    found = parse_url(text)
    assert (str(found), found.hostname) == (written, hostname)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a\nb", "net/url: invalid control character in URL"),
        ("://a", "missing protocol scheme"),
        ("%zz://a", "first path segment in URL cannot contain colon"),
        (" nats://a", "first path segment in URL cannot contain colon"),
        ("http://a b", 'invalid character " " in host name'),
        ("http://%zz", 'invalid URL escape "%zz"'),
        ("http://%20", 'invalid URL escape "%20"'),
        ("http://h/%2", 'invalid URL escape "%2"'),
        ("http://h#%", 'invalid URL escape "%"'),
        ("nats://a:port", 'invalid port ":port" after host'),
        ("http://a:1:2", 'invalid port ":1:2" after host'),
        ("nats://[::1", "missing ']' in host"),
        ("nats://[::1]x", 'invalid port "x" after host'),
        ("nats://[a]", 'invalid host: ParseAddr("a"): unable to parse IP'),
        ("nats://a[::1]", "invalid IP-literal"),
        ("nats://u b@h", "net/url: invalid userinfo"),
    ],
)
def test_what_is_no_url_is_told(text: str, told: str) -> None:
    with pytest.raises(UrlProblem) as caught:
        parse_url(text)
    assert str(caught.value) == told
