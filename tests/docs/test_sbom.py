"""The bill of materials names what the lock pins, with the same hashes, and who needs what."""

import json
import re
import subprocess
import sys
from pathlib import Path

from tests.needs import needs

TOP = Path(__file__).parent.parent.parent


def test_the_bill_of_materials_names_what_is_installed() -> None:
    command = [sys.executable, "scripts/sbom.py"]
    first, second = (
        subprocess.run(command, cwd=TOP, check=True, capture_output=True).stdout for _ in range(2)
    )
    assert first == second
    bill = json.loads(first)
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    lock = (TOP / "requirements.lock").read_text()
    entries = re.findall(r"^([A-Za-z0-9_.-]+)==([^\s;]+)", lock, re.MULTILINE)
    listed = {(each["name"], each["version"]) for each in bill["components"]}
    assert listed == {(re.sub(r"[-_.]+", "-", name).lower(), version) for name, version in entries}
    hashes = [found["content"] for each in bill["components"] for found in each["hashes"]]
    assert sorted(hashes) == sorted(re.findall(r"sha256:([0-9a-f]{64})", lock))


def test_every_package_is_reached_from_the_server() -> None:
    command = [sys.executable, "scripts/sbom.py"]
    bill = json.loads(subprocess.run(command, cwd=TOP, check=True, capture_output=True).stdout)
    needs = {each["ref"]: each["dependsOn"] for each in bill["dependencies"]}
    reached, waiting = set(), [bill["metadata"]["component"]["bom-ref"]]
    while waiting:
        ref = waiting.pop()
        if ref not in reached:
            reached.add(ref)
            waiting += needs[ref]
    assert reached == {
        bill["metadata"]["component"]["bom-ref"],
        *(each["bom-ref"] for each in bill["components"]),
    }


@needs("ssh-keygen")
def test_a_signed_bill_of_materials_is_verified_and_a_changed_one_is_not(tmp_path: Path) -> None:
    bill, key = tmp_path / "clawdforge.cdx.json", tmp_path / "key"
    bill.write_bytes(subprocess.check_output([sys.executable, "scripts/sbom.py"], cwd=TOP))
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    public = (tmp_path / "key.pub").read_text()
    (tmp_path / "signers").write_text(f"releases {public}")
    check = ["ssh-keygen", "-Y", "verify", "-f", str(tmp_path / "signers"), "-I", "releases"]
    check += ["-n", "clawdforge", "-s", f"{bill}.sig"]
    for text in (bill.read_bytes(), bill.read_bytes().replace(b"MIT", b"BSD")):
        bill.write_bytes(text)
        subprocess.run(["./scripts/sign", key, bill], cwd=TOP, check=True, capture_output=True)
        subprocess.run(check, input=text, check=True, capture_output=True)
        changed = subprocess.run(check, input=text.replace(b"1", b"2", 1), check=False, capture_output=True)
        assert changed.returncode != 0
