//! What matters to somebody who wants every I/O per second: memory, processor, distance.
#![forbid(unsafe_code)]

use super::{Finding, Question};
use crate::pci::Sysfs;

/// The most that a processor may take to wake up before it shows in the latency of a waiting reader.
const SLOW_WAKE_US: u64 = 50;
/// The common size of huge pages.
const HUGE_PAGE_DIRECTORY: &str = "hugepages-2048kB";

pub(super) fn findings(sysfs: &Sysfs, question: &Question<'_>) -> Vec<Finding> {
    let mut findings = vec![locked_memory(question), huge_pages(sysfs)];
    let cores = online_cores(sysfs);
    findings.push(core_count(sysfs, &cores));
    findings.extend(governor(sysfs, &cores));
    findings.extend(idle_states(sysfs, &cores));
    findings.extend(numa(sysfs, question));
    findings
}

fn locked_memory(question: &Question<'_>) -> Finding {
    match question.locked_memory.check(question.needed_bytes) {
        Err(shortage) => {
            Finding::blocker("memlock", shortage.to_string(), "raise RLIMIT_MEMLOCK, or grant CAP_IPC_LOCK")
        }
        Ok(()) if question.locked_memory.exempt => Finding::ok("memlock", "no limit applies (CAP_IPC_LOCK)"),
        Ok(()) => match question.locked_memory.limit_bytes {
            None => Finding::ok("memlock", "RLIMIT_MEMLOCK is unlimited"),
            Some(limit) => {
                let mib = |bytes: u64| format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20));
                Finding::ok(
                    "memlock",
                    format!("RLIMIT_MEMLOCK is {}, {} needed", mib(limit), mib(question.needed_bytes)),
                )
            }
        },
    }
}

fn huge_pages(sysfs: &Sysfs) -> Finding {
    let directory = sysfs.sys("kernel/mm/hugepages").join(HUGE_PAGE_DIRECTORY);
    let number = |name: &str| sysfs.number(directory.join(name)).unwrap_or(0);
    match (number("nr_hugepages"), number("free_hugepages")) {
        (0, _) => Finding::warn(
            "hugepages",
            "none of 2 MiB reserved; buffers are made of ordinary pages",
            "optional: echo 64 > /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages",
        ),
        (all, 0) => Finding::warn(
            "hugepages",
            format!("all {all} of 2 MiB are in use"),
            "optional: reserve more in /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages",
        ),
        (all, free) => Finding::ok("hugepages", format!("{free} of {all} of 2 MiB free")),
    }
}

/// The numbers of a list such as `0-3,8,10-11`. A list that is no list is empty.
pub(super) fn cores_of(list: &str) -> Vec<u32> {
    let part = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.trim().parse::<u32>().ok()?, last.trim().parse::<u32>().ok()?);
        // More cores than any machine has: not a list of cores.
        (first <= last && last < 1 << 16).then_some(first..=last)
    };
    list.split(',').filter_map(part).flatten().collect()
}

fn online_cores(sysfs: &Sysfs) -> Vec<u32> {
    cores_of(&sysfs.attribute(sysfs.sys("devices/system/cpu/online")).unwrap_or_default())
}

fn core_count(sysfs: &Sysfs, cores: &[u32]) -> Finding {
    let isolated = sysfs.attribute(sysfs.sys("devices/system/cpu/isolated"));
    let isolated = isolated.map_or_else(String::new, |list| format!(", isolated: {list}"));
    match cores.len() {
        0 => Finding::warn("cores", "not known", "mount /sys"),
        1 => Finding::warn(
            "cores",
            "one core: a polling run shares it with everything else",
            "let it wait for interrupts (--wait interrupt), and expect lower figures",
        ),
        count => Finding::ok("cores", format!("{count} online{isolated}")),
    }
}

fn governor(sysfs: &Sysfs, cores: &[u32]) -> Option<Finding> {
    let governors: Vec<_> = cores
        .iter()
        .filter_map(|core| sysfs.attribute(sysfs.sys(format!("devices/system/cpu/cpu{core}/cpufreq/scaling_governor"))))
        .collect();
    if governors.is_empty() {
        return None;
    }
    let slow: Vec<_> = governors.iter().filter(|governor| *governor != "performance").collect();
    let Some(first) = slow.first() else {
        return Some(Finding::ok("governor", "performance"));
    };
    Some(Finding::warn(
        "governor",
        format!("{} of {} cores are on {first}, so their speed changes under way", slow.len(), governors.len()),
        "for figures that can be compared: cpupower frequency-set -g performance",
    ))
}

fn idle_states(sysfs: &Sysfs, cores: &[u32]) -> Option<Finding> {
    let directory = sysfs.sys(format!("devices/system/cpu/cpu{}/cpuidle", cores.first()?));
    let deepest = sysfs
        .names_or_none(&directory)
        .iter()
        .filter(|state| sysfs.number(directory.join(state).join("disable")) != Some(1))
        .filter_map(|state| {
            let state = directory.join(state);
            Some((sysfs.number(state.join("latency"))?, sysfs.attribute(state.join("name"))?))
        })
        .max()?;
    let (wake_us, name) = deepest;
    let evidence = format!("the deepest is {name}, which takes {wake_us} us to leave");
    Some(if wake_us > SLOW_WAKE_US {
        Finding::warn(
            "cstates",
            format!("{evidence}: it shows in the latency of runs that wait for interrupts, not of polling ones"),
            "for such runs: cpupower idle-set -D 50, or hold /dev/cpu_dma_latency open",
        )
    } else {
        Finding::ok("cstates", evidence)
    })
}

fn numa(sysfs: &Sysfs, question: &Question<'_>) -> Option<Finding> {
    let function = question.function?;
    let nodes = cores_of(&sysfs.attribute(sysfs.sys("devices/system/node/online")).unwrap_or_default());
    if nodes.len() < 2 {
        return None;
    }
    let Some(node) = function.numa_node else {
        return Some(Finding::warn(
            "numa",
            format!("the machine has {} memory nodes, and does not tell which one the drive is at", nodes.len()),
            "try --cpus with the cores of each node, and take the faster one",
        ));
    };
    let list = sysfs.attribute(sysfs.sys(format!("devices/system/node/node{node}/cpulist"))).unwrap_or_default();
    let near = cores_of(&list);
    let allowed = sysfs.lines(sysfs.proc("self/status")).into_iter().find_map(|line| {
        let list = line.strip_prefix("Cpus_allowed_list:")?;
        Some(cores_of(list))
    });
    let is_near = |cores: &Vec<u32>| cores.iter().any(|core| near.contains(core));
    Some(if near.is_empty() {
        Finding::warn("numa", format!("the drive is at node {node}, which has no cores"), "nothing: every core is far")
    } else if allowed.as_ref().is_none_or(is_near) {
        Finding::ok("numa", format!("the drive is at node {node}, cores {list}"))
    } else {
        Finding::warn(
            "numa",
            format!("the drive is at node {node} (cores {list}), and this process may not run there"),
            format!("start it with taskset -c {list}"),
        )
    })
}
