"""Why tests of hermes-webui's own fail on this server although they ask only for what is promised."""

from collections.abc import Mapping
from typing import Final

REASONS: Final[Mapping[str, frozenset[str]]] = {
    "it writes hermes' own files and expects the server to have them": frozenset(
        {
            "test_session_summary_redaction.py::test_api_sessions_search_redacts_titles",
            "test_session_summary_redaction.py::test_api_sessions_list_redacts_secret_titles",
        }
    ),
    "ids are longer here": frozenset({"test_sprint1.py::test_session_create_and_load"}),
    "how large an upload may be is the operator's setting": frozenset(
        {"test_sprint1.py::test_upload_too_large"}
    ),
    "a session without a folder that somebody chose has one of its own, and so has its copy": frozenset(
        {"test_sprint13.py::test_duplicate_session"}
    ),
    "a password is a token, and a wrong one is refused even where nobody has to log in": frozenset(
        {"test_sprint19.py::test_login_when_auth_disabled"}
    ),
    "it is refused as it should be, in other words": frozenset(
        {
            "test_sprint29.py::TestCSRF::test_cross_origin_post_rejected",
            "test_sprint3.py::test_session_new_rejects_workspace_outside_trusted_root",
        }
    ),
    "it reads what its own server prints": frozenset(
        {"test_tls_support.py::TestTLSEndToEnd::test_tls_startup_failure_fallback_to_http"}
    ),
}
"""The reason, and the tests that it holds for, of both versions."""
