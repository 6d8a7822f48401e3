import CLinux
import Foundation
import Glibc
import PrismAdmission
import PrismBase
import PrismConfig
import PrismProtocol
import PrismTestSupport
import Synchronization
import Testing

@testable import PrismLinux

@Suite("Reports of the machine", .timeLimit(.minutes(2)))
final class HostReportTests: Sendable {
  private let root = TemporaryFolder()
  private var files: HostFiles { HostFiles(root: root.path) }

  private func write(_ text: String, to path: String) throws {
    let folder = root(FilePath.folder(of: path))
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    try root.write(text, to: path)
  }

  private func writeCounters(busy: Int, idle: Int, waited: Int, sectors: Int, received: Int) throws {
    try write("cpu  \(busy) 0 100 \(idle) 0 0 0 0 0 0\ncpu0 1 1 1\n", to: "proc/stat")
    try write(
      "some avg10=0.00 avg60=0.00 avg300=0.00 total=\(waited)\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
      to: "proc/pressure/io")
    try write("some avg10=0.00 avg60=0.00 avg300=0.00 total=1\nfull avg10=0 total=9\n", to: "proc/pressure/cpu")
    try write(
      """
       254 0 vda 1 0 \(sectors) 3 4 0 8 6 0 500 9 0 0 0 0 0 0
       254 1 vda1 1 0 \(sectors) 3 4 0 8 6 0 500 9 0 0 0 0 0 0
         7 0 loop0 1 0 2 3 4 5 6 7 8 9 10 11 0 0 0 0 0

      """, to: "proc/diskstats")
    try write("", to: "sys/block/vda/x")
    try write(
      """
      Inter-|   Receive                                                |  Transmit
       face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
          lo: 9 9 0 0 0 0 0 0 9 9 0 0 0 0 0 0
        eth0:\(received) 9 1 2 0 0 0 0 70 9 3 4 0 0 0 0

      """, to: "proc/net/dev")
  }

  @Test("a report has what happened since the one before it, of disks without their parts, and not of lo")
  func interval() throws {
    try writeCounters(busy: 100, idle: 1000, waited: 5_000_000, sectors: 10, received: 100)
    let before = files.counters(uptime: .seconds(100))
    try writeCounters(busy: 150, idle: 1150, waited: 6_000_000, sectors: 30, received: 40)
    let after = files.counters(uptime: .seconds(110))
    var gauges = HostGauges(load: [0.5, 0.25, 0.1].map { .double($0) }, processors: 2)
    gauges.takeMemory("MemTotal:       1000 kB\nMemFree: 1 kB\nMemAvailable:    600 kB\nSwapTotal: 0 kB\n")
    gauges.temperatures = [["name": "soc", "celsius": .double(41.5)]]
    gauges.fileSystems = [["path": "/", "totalByte": 1000, "freeByte": 400, "freeInodes": 7]]
    let expected = #"""
      {"uptimeSecond":110,"intervalMs":10000,"processors":2,"load":[0.5,0.25,0.1],\#
      "processor":{"busy":0.25,"system":0.0,"iowait":0.0,"steal":0.0},\#
      "memory":{"totalKByte":1000,"availableKByte":600,"swapKByte":0},\#
      "pressure":{"cpuSome":0.0,"ioFull":0.0,"ioSome":0.1},\#
      "disks":[{"name":"vda","readByte":10240,"writtenByte":0,"busy":0.0}],\#
      "fileSystems":[{"path":"/","totalByte":1000,"freeByte":400,"freeInodes":7}],\#
      "network":[{"name":"eth0","receivedByte":40,"sentByte":0,"errors":0,"dropped":0}],\#
      "temperatures":[{"name":"soc","celsius":41.5}]}
      """#
    #expect(HostMetrics.meta(from: before, to: after, gauges).text == expected, "the interface began again at 0")
  }

  @Test("this machine gives every part that the kernel has, within the size of a meta") func thisMachine() throws {
    let here = HostFiles()
    let meta = HostMetrics.meta(
      from: here.counters(uptime: .seconds(1)), to: here.counters(uptime: .seconds(2)), here.gauges())
    #expect(meta["memory"]?["totalKByte"]?.int ?? 0 > 0 && meta["processor"]?["busy"] != nil)
    #expect(meta["load"] != nil && (meta["fileSystems"] != nil || meta["network"] != nil))
    #expect(meta.bytes.count < Limits.metaBytesMax - 2048)
  }

  @Test("without any of the files the report has the times only") func nothing() {
    let counters = files.counters(uptime: .seconds(5))
    var gauges = files.gauges()
    gauges.processors = 1
    #expect(
      HostMetrics.meta(from: counters, to: counters, gauges).text
        == #"{"uptimeSecond":5,"intervalMs":1,"processors":1}"#)
  }

  @Test("a disk is named once, a path is unescaped, and no file system of a program is asked") func mountPoints() {
    let text = """
      proc /proc proc rw 0 0
      /dev/vda1 / ext4 rw 0 0
      /dev/vda1 /var/lib/docker ext4 rw 0 0
      /dev/loop3 /snap squashfs ro 0 0
      /dev/vdc /home/mallory/never fuse.sshfs rw 0 0
      /dev/vdb /media/a\\040b vfat rw 0 0
      """
    #expect(HostFiles.mountPoints(text) == ["/", "/media/a b"])
  }

  @Test(
    "the run before this boot ended in order if a shutdown was written down after its own boot",
    arguments: [
      ([], false, nil), ([.boot], false, nil), ([.boot], true, .crash),
      ([.boot, .other, .shutdown, .boot, .other], false, .clean), ([.boot, .other, .boot], false, .power),
      ([.boot, .other, .boot], true, .crash), ([.boot, .shutdown, .boot, .other, .boot], false, .power),
      ([.shutdown, .boot], false, .clean), ([.boot, .shutdown, .boot], true, .clean),
    ] as [([LastShutdown.Record], Bool, LastShutdown?)])
  func lastShutdown(records: [LastShutdown.Record], hasTrace: Bool, expected: LastShutdown?) {
    #expect(LastShutdown(records: records, hasCrashTrace: hasTrace) == expected)
  }

  @Test("wtmp is read as utmp(5) writes it, and a kernel that died is known by pstore or its watchdog") func traces()
    throws
  {
    var bytes: [UInt8] = []
    for (type, user) in [(BOOT_TIME, "reboot"), (RUN_LVL, "runlevel"), (BOOT_TIME, "reboot")] {
      var record = utmpx()
      record.ut_type = Int16(type)
      withUnsafeMutableBytes(of: &record.ut_user) { $0.copyBytes(from: user.utf8) }
      withUnsafeBytes(of: record) { bytes += $0 }
    }
    try write("", to: "var/log/x")
    try Data(bytes + [1, 2, 3]).write(to: URL(filePath: root("var/log/wtmp")))
    let now = Int64(Date().timeIntervalSince1970)
    #expect(LastShutdown.read(files, bootTime: now) == .power)
    try write("", to: "var/lib/systemd/pstore/1700000000/dmesg.txt")
    #expect(LastShutdown.read(files, bootTime: now) == .crash)
    #expect(LastShutdown.read(files, bootTime: now + 3600) == .power, "the trace is of an earlier boot")
    try write("32\n", to: "sys/class/watchdog/watchdog0/bootstatus")
    #expect(LastShutdown.read(files, bootTime: now + 3600) == .crash)
  }

  @Test("a boot is reported once, with its phases once it is over") func bootPhases() throws {
    try write("0a1b-2c\n", to: "proc/sys/kernel/random/boot_id")
    try write("6.1.0-18-amd64\n", to: "proc/sys/kernel/osrelease")
    let time = ManualTime(uptime: .seconds(20))
    var boot = try #require(BootReport(files, time: time))
    boot.times = .init(firmware: 9_000_000, loader: 4_000_000, initrd: 2_000_000, userspace: 5_000_000, finish: 0)
    #expect(!boot.isComplete)
    boot.times?.finish = 17_500_000
    #expect(boot.isComplete && boot.bootID == "0a1b2c")
    #expect(
      boot.meta.text == #"""
        {"kernel":"6.1.0-18-amd64","uptimeSecond":20,"phases":{"firmwareMs":5000,"loaderMs":4000,"kernelMs":2000,\#
        "initrdMs":3000,"userspaceMs":12500}}
        """#)
    boot.times = nil
    #expect(boot.isComplete && boot.meta["phases"] == nil)
  }

  @Test("a boot is stored once over restarts of the daemon; metrics come at the interval, refused ones are made up for")
  func input() async throws {
    try write("0a1b-2c\n", to: "proc/sys/kernel/random/boot_id")
    try writeCounters(busy: 100, idle: 1000, waited: 0, sectors: 10, received: 100)
    let types = ["hostMetrics", "appBoot"].map { MonitoredType(ReportType($0)!) }
    let listed: (inout Snapshot) -> Void = {
      $0.namespaces[.prism] = NamespaceConfiguration(name: .prism, monitorList: types)
    }
    try await withIngestRig(listed) { rig in
      let time = ManualTime()
      var settings = DaemonConfiguration.Host()
      (settings.interval, settings.namespace) = (.seconds(60), "prism")
      for _ in 0..<2 {
        let host = HostInput(sink: rig.server, time: time, files: files, log: Logger(write: { _ in }))
        await host.follow(settings)
        try await eventually("it waits for the interval") { time.sleeperCount == 1 }
        await host.stop()
      }
      #expect(rig.sink.rowCount == 1, "the boot")
      let host = HostInput(sink: rig.server, time: time, files: files, log: Logger(write: { _ in }))
      await host.follow(settings)
      try await eventually("it waits for the interval") { time.sleeperCount == 1 }
      rig.sink.fail(Refusal(.diskFull, "full", retryMilliseconds: 1000))
      time.advance(by: .seconds(60))
      try await eventually("it was refused, and waits") {
        await rig.server.counters.tally.received == 2 && time.sleeperCount == 1
      }
      rig.sink.fail(nil)
      time.advance(by: .seconds(60))
      try await eventually("it is stored") { rig.sink.rowCount == 2 }
      let batch = try #require(rig.sink.commits.last?.first)
      #expect(String(decoding: batch.arena, as: UTF8.self).contains(#""intervalMs":120000"#))
      await host.stop()
    }
  }
}
