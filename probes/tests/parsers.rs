//! Properties of every parser of outside text: no input makes one panic, and what was written is what is read.

#![allow(clippy::expect_used, clippy::panic, reason = "a test that cannot go on should say where")]

use plimsoll_model::{Bytes, MountPoint};
use plimsoll_probes::parse;
use proptest::{collection::vec, prelude::*, sample::select};

/// Real texts, to be cut and spliced: nearly right input reaches further than noise.
const REAL: [&str; 16] = [
    "0-3,8,10-11\n",
    "cpu  100000 200 30000 68000000 500 0 900 40 0 0\ncpu0 1 2 3\n",
    "processor\t: 0\ncpu MHz\t\t: 2445.422\n",
    "MemTotal:       24100000 kB\nMemFree: 1 kB\nMemAvailable:   20000000 kB\n",
    "Node 0 MemTotal:       65400000 kB\nNode 0 MemFree:        45000000 kB\n",
    "Node 0, zone   Normal    100     80     60     50     40     30     20     10     10      9   9000 \n",
    "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n/swapfile file 8388604 0 -2\n",
    "BOOT_IMAGE=/vmlinuz default_hugepagesz=1G hugepagesz=2M hugepages=0:512,1:512 hugepages=4\n",
    "6,339,5140900,-,caller=T1;EXT4-fs (nvme1n1p1): Remounting filesystem read-only\n SUBSYSTEM=block\n",
    "some avg10=0.50 avg60=1.20 avg300=0.90 total=12345\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
    "            CPU0       CPU1\n MCE:          0          1   Machine check exceptions\n",
    "812 (slurmd) x) S 1 812 812 0 -1 4194560 100 0 0 0 50 20 0 0 20 0 1 0 1000 10000000 500\n",
    "Limit  Soft Limit Hard Limit Units\nMax open files            1024  524288 files\nMax locked memory  unlimited unlimited bytes\n",
    "40 27 9:0 / /scr\\040atch rw,noatime shared:1 - xfs /dev/md0 rw,attr2\n",
    "UUID=0a34 / ext4 defaults 0 1\n10.0.0.2:/home /home nfs4 hard,_netdev 0 0\n",
    "/scratch total=4096 free=1024 available=1000 inodes=100 inodes_free=50 write=ready\n",
];

fn spoiled() -> impl Strategy<Value = Vec<u8>> {
    (select(&REAL[..]), any::<prop::sample::Index>(), any::<prop::sample::Index>(), vec(any::<u8>(), 0..12))
        .prop_map(|(text, from, to, noise)| {
            let mut bytes = text.as_bytes().to_vec();
            let (from, to) = (from.index(bytes.len()), to.index(bytes.len()));
            bytes.splice(from.min(to)..from.max(to), noise);
            bytes
        })
}

fn outside_text() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![spoiled(), vec(any::<u8>(), 0..600)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, ..ProptestConfig::default() })]

    #[test]
    fn no_text_makes_a_parser_panic(bytes in outside_text()) {
        let text = String::from_utf8_lossy(&bytes);
        let _ = parse::cpu_list(&text);
        let _ = parse::cpu_times(&text);
        let _ = parse::cpuinfo_mhz(&text);
        let _ = parse::khz(&text);
        let _ = parse::meminfo(&text);
        let _ = parse::node_total(&text);
        let _ = parse::buddyinfo(&text);
        let _ = parse::swaps(&text);
        let _ = parse::selected_word(&text);
        let _ = parse::hugepage_directory(&text);
        let _ = parse::hugepages_asked(&text, Bytes(2 << 20), Bytes(1 << 30));
        let _ = parse::uptime_ms(&text);
        let _ = parse::boot_id(&text);
        let _ = parse::kmsg_record(&text);
        let _ = parse::pressure(&text);
        let _ = parse::machine_checks(&text);
        let _ = parse::clock_sync(&text);
        let _ = parse::process_stat(&text);
        let _ = parse::limits(&text);
        let _ = parse::link_speed(&text);
        let _ = parse::one_number::<u64>(&text);
        let _ = parse::one_line(&text);
        let _ = parse::one_word(&text);
        let _ = parse::mountinfo(&bytes);
        let _ = parse::fstab(&bytes);
        let _ = parse::space_answer(&text, &MountPoint("/scratch".to_owned()));
        let _ = parse::smart_log(&bytes);
    }

    #[test]
    fn no_page_of_the_right_size_makes_the_health_log_panic(page in vec(any::<u8>(), parse::SMART_LOG_BYTES)) {
        if let Ok(log) = parse::smart_log(&page) {
            prop_assert!(log.spare_percent <= 100);
        }
    }

    #[test]
    fn a_list_of_processors_is_read_as_it_was_written(cpus in prop::collection::btree_set(0_u32..5000, 0..200)) {
        let cpus: Vec<u32> = cpus.into_iter().collect();
        let text = cpus.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        prop_assert_eq!(parse::cpu_list(&text).ok(), Some(cpus));
    }

    #[test]
    fn a_range_of_processors_names_each_of_them(first in 0_u32..4000, count in 1_u32..1000) {
        let last = first + count - 1;
        prop_assert_eq!(parse::cpu_list(&format!("{first}-{last}\n")).ok(), Some((first..=last).collect()));
    }

    #[test]
    fn a_process_keeps_its_state_whatever_it_calls_itself(name in "[ -~]{0,15}", state in select(&['R', 'S', 'D', 'Z'][..])) {
        let text = format!("7 ({name}) {state} 1 7 7 0 -1 0 0 0 0 0 11 22 0 0 20 0 1 0 333 0 0\n");
        let stat = parse::process_stat(&text).expect("a process");
        prop_assert_eq!((stat.name, stat.state, stat.cpu_ticks, stat.start_ticks), (name, state, 33, 333));
    }

    #[test]
    fn a_mount_point_of_any_bytes_survives_the_mount_table(path in vec(1_u8.., 1..40)) {
        // As the kernel does: only these four are escaped.
        let escaped: Vec<u8> = path.iter().flat_map(|byte| match byte {
            b' ' => b"\\040".to_vec(),
            b'\t' => b"\\011".to_vec(),
            b'\n' => b"\\012".to_vec(),
            b'\\' => b"\\134".to_vec(),
            other => vec![*other],
        }).collect();
        let line = [b"1 2 0:9 / /".as_slice(), &escaped, b" rw - ext4 /dev/sda rw\n"].concat();
        let mounts = parse::mountinfo(&line).expect("a mount table");
        let point = mounts.first().expect("its mount").point.clone();
        prop_assert!(point.0.is_ascii());
        prop_assert_eq!(point.to_bytes(), [b"/".as_slice(), &path].concat());
    }

    #[test]
    fn a_record_of_the_kernels_log_is_read_as_it_was_written(facility in 0_u32..24, level in 0_u32..8, seq: u64, at_us: u64, text in "[ -~]{0,80}") {
        let record = format!("{},{seq},{at_us},-;{text}\n KEY=value\n", facility << 3 | level);
        let read = parse::kmsg_record(&record).expect("a record");
        prop_assert_eq!((read.facility, read.seq, read.at_us, read.text), (facility, seq, at_us, text.as_str()));
    }
}

#[test]
fn of_mounts_over_each_other_only_the_last_is_seen() {
    let table = b"1 0 8:1 / / rw - ext4 /dev/sda1 rw\n2 1 0:5 / /x rw - nfs4 a:/x rw\n3 1 8:2 / /x ro - ext4 /dev/sda2 rw\n";
    let mounts = parse::mountinfo(table).expect("a mount table");
    let seen: Vec<_> = mounts.iter().map(|m| (m.point.0.as_str(), m.fs_type.as_str(), m.read_only)).collect();
    assert_eq!(seen, [("/", "ext4", false), ("/x", "ext4", true)]);
}

#[test]
fn a_mount_below_a_later_one_is_hidden_and_one_on_it_is_not() {
    let table = b"1 0 8:1 / / rw - ext4 /dev/sda1 rw\n\
        2 1 8:2 / /a/b rw - ext4 /dev/sda2 rw\n\
        3 1 0:9 / /a rw - tmpfs tmpfs rw\n\
        4 3 8:3 / /a/c rw - ext4 /dev/sda3 rw\n\
        9 77 8:4 / /strange rw - ext4 /dev/sda4 rw\n";
    let mounts = parse::mountinfo(table).expect("a mount table");
    let seen: Vec<_> = mounts.iter().map(|mount| mount.point.0.as_str()).collect();
    assert_eq!(seen, ["/", "/a", "/a/c", "/strange"]);
}

#[test]
fn a_root_that_stands_last_in_its_table_hides_nothing() {
    let table = b"22 27 0:21 / /proc rw - proc proc rw\n25 24 0:23 / /dev/shm rw - tmpfs tmpfs rw\n27 1 8:1 / / rw - ext4 /dev/sda1 rw\n";
    assert_eq!(parse::mountinfo(table).expect("a mount table").len(), 3);
}

#[test]
fn an_ext4_that_refuses_writes_is_read_only_whatever_its_flags_say() {
    let table = b"1 0 8:1 / / rw - ext4 /dev/sda1 rw,errors=remount-ro,emergency_ro\n2 1 8:2 / /x rw - ext4 /dev/sda2 rw,shutdown\n";
    let mounts = parse::mountinfo(table).expect("a mount table");
    let told: Vec<_> = mounts.iter().map(|mount| (mount.read_only, mount.shut_down)).collect();
    assert_eq!(told, [(true, false), (false, true)]);
}

#[test]
fn a_frequency_that_moves_is_no_nominal_one() {
    let mhz = |text: &str| parse::cpuinfo_mhz(text).ok().map(|mhz| mhz.0);
    assert_eq!(mhz("model name : Xeon(R) CPU @ 2.00GHz\ncpu MHz : 800.1\nflags : aperfmperf\n"), Some(2000));
    assert_eq!(mhz("model name : EPYC\ncpu MHz : 800.1\nflags : fpu aperfmperf\n"), None);
    assert_eq!(mhz("model name : EPYC\ncpu MHz : 2445.4\nflags : fpu\n"), Some(2445));
}

#[test]
fn pages_are_counted_for_the_size_that_they_were_asked_in() {
    let line = "hugepages=7 default_hugepagesz=1G hugepagesz=2M hugepages=0:512,1:512";
    let asked = |page| parse::hugepages_asked(line, page, Bytes(2 << 20)).expect("numbers");
    assert_eq!((asked(Bytes(2 << 20)), asked(Bytes(1 << 30))), (Some(1024), Some(7)));
    assert_eq!(parse::hugepages_asked("quiet", Bytes(2 << 20), Bytes(2 << 20)).expect("none"), None);
}
