"""NCCL's own words, as NCCL 2.2x writes them."""

from injectors.faults.nccl_p2p_disabled import NcclP2pDisabled
from injectors.faults.nccl_sm_contention import NcclSmContention
from injectors.faults.nccl_transport_fallback import NcclTransportFallback
from injectors.faults.nccl_tuning_regression import NcclTuningRegression
from injectors.recorder import nccl_log

LOG = """\
gpu7:417:417 [0] NCCL INFO NCCL_PROTO set by environment to LL
gpu7:417:417 [0] NCCL INFO NCCL_SOCKET_IFNAME set by environment to eth0
gpu7:417:417 [0] NCCL INFO Bootstrap : Using eth0:10.1.2.3<0>
gpu7:417:533 [0] NCCL INFO NET/IB : No device found.
gpu7:417:533 [0] NCCL INFO Using network Socket
gpu7:417:533 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] [send] via NET/Socket/0
gpu7:417:533 [0] NCCL INFO Channel 01/0 : 0[0] -> 1[1] [send] via NET/Socket/0
gpu7:417:533 [0] NCCL INFO Channel 00/0 : 1[1] -> 0[0] via P2P/CUMEM/read
gpu7:417:533 [0] NCCL INFO comm 0x5581 rank 0 nranks 2 cudaDev 0 - Init COMPLETE
"""


def test_telling_lines_are_kept_once_without_host_and_address():
    assert nccl_log.lines(LOG) == [
        "NCCL INFO NCCL_PROTO set by environment to LL",
        "NCCL INFO NET/IB : No device found",
        "NCCL INFO Using network Socket",
        "NCCL INFO Channel 00/0 : 0[0] -> 1[1] [send] via NET/Socket/0",
        "NCCL INFO Channel 00/0 : 1[1] -> 0[0] via P2P/CUMEM/read",
    ]


def test_each_process_writes_a_file_of_its_own(tmp_path):
    assert nccl_log.read(tmp_path) == []
    path = nccl_log.variables(tmp_path)["NCCL_DEBUG_FILE"]
    with open(path, "w") as file:  # noqa: PTH123 - the name comes as a variable's text
        file.write(LOG)
    assert len(nccl_log.read(tmp_path)) == 5


def test_faults_of_nccl_are_their_variables():
    assert NcclP2pDisabled().settings() == {
        "environment": {"NCCL_P2P_DISABLE": "1", "NCCL_NVLS_ENABLE": "0"}
    }
    assert NcclTuningRegression(protocol=None, algorithm="Tree", channels=2).variables() == {
        "NCCL_ALGO": "Tree",
        "NCCL_MAX_NCHANNELS": "2",
    }
    assert NcclTransportFallback().variables()["NCCL_SHM_DISABLE"] == "1"
    assert NcclSmContention(blocks=16).variables()["NCCL_MAX_CTAS"] == "16"


def test_the_recorder_reads_every_variable_that_a_fault_sets():
    faults = (
        NcclP2pDisabled(),
        NcclTransportFallback(),
        NcclTuningRegression(algorithm="Ring", channels=1),
        NcclSmContention(),
    )
    for fault in faults:
        for name, value in fault.variables().items():
            line = f"NCCL INFO {name} set by environment to {value}"
            assert nccl_log.lines(f"gpu7:417:417 [0] {line}\n") == [line]
