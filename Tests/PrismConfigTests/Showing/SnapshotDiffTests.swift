import Glibc
import PrismConfig
import PrismProtocol
import Testing

@Suite("What a new configuration changes")
struct SnapshotDiffTests {
  private let shop = "monitorList: [{type: order}]\n"

  @Test("an equal configuration changes nothing")
  func nothing() throws {
    let folder = try ConfigurationFolder(["prismd.yaml": "", "namespaces.d/shop.yaml": shop])
    let (first, second) = (try folder.load(), try folder.load())
    #expect(SnapshotDiff(from: first.snapshot, to: second.snapshot).isEmpty)
    #expect(second.reloadFaults(running: first.snapshot) == nil)
  }

  @Test("each key that changes is shown with its old and new value, in the file's units; others are not touched")
  func changes() throws {
    let folder = try ConfigurationFolder([
      "prismd.yaml": "", "namespaces.d/shop.yaml": shop, "namespaces.d/old.yaml": shop, "namespaces.d/same.yaml": shop,
    ])
    let before = try folder.load().snapshot
    try folder.write("prismd.yaml", "log: {level: debug}\nmetrics: {listen: 9464}\n")
    try folder.write(
      "namespaces.d/shop.yaml", "expirationDay: 3\nmaxBodyMByte: 2\nmonitorList: [{type: order, onlyWifi: true}]\n")
    try folder.write("namespaces.d/new.yaml", shop)
    try #require(rename("\(folder.path)/namespaces.d/old.yaml", "\(folder.path)/namespaces.d/old.yaml.off") == 0)
    let diff = SnapshotDiff(from: before, to: try folder.load().snapshot)
    let types = { (wifi: Bool) in
      #"[{"type":"order","onlyWifi":\#(wifi),"isRealtime":false,"isUploadPayload":false,"keep":"queue"}]"#
    }
    #expect(
      diff.lines == [
        "prismd: metrics.listen none -> 127.0.0.1:9464", "prismd: log.level info -> debug", "new: added",
        "old: removed",
        "shop: maxBodyMByte 1 -> 2", "shop: expirationDay 15 -> 3",
        "shop: monitorList \(types(false)) -> \(types(true))",
      ])
    #expect(diff.changed.keys.map(\.text) == ["shop"])
  }

  @Test("a key of remote configuration is in force, shown and compared without a url, too")
  func signingKey() throws {
    let folder = try ConfigurationFolder(["prismd.yaml": ""])
    let before = try folder.load().snapshot
    try folder.write("prismd.yaml", "remote: {publicKey: \"\(String(repeating: "ab", count: 32))\"}\n")
    let loaded = try folder.load()
    let key = "q6urq6urq6urq6urq6urq6urq6urq6urq6urq6urq6s="
    #expect(loaded.snapshot.daemon.remote == nil && loaded.snapshot.daemon.commands.publicKey?.count == 32)
    #expect(loaded.text(origins: false).contains("publicKey: \"\(key)\"\n"), "\(loaded.text(origins: false))")
    #expect(SnapshotDiff(from: before, to: loaded.snapshot).lines.contains("prismd: remote.publicKey none -> \(key)"))
  }

  @Test("the state's folder and the sockets' paths cannot change while prismd runs")
  func restart() throws {
    let folder = try ConfigurationFolder(["prismd.yaml": "state: /tmp/a\n"])
    let running = try folder.load().snapshot
    try folder.write("prismd.yaml", "log: {level: debug}\ncontrol: {socket: /tmp/c}\n")
    let faults = try #require(try folder.load().reloadFaults(running: running)).faults
    let restart = "restart it for this change, or take the change back"
    #expect(
      faults.map { $0.description.replacing(folder.path + "/", with: "") } == [
        "prismd.yaml:2: control.socket: is /tmp/c, but prismd runs with /run/prism/control.sock; \(restart)",
        "prismd.yaml:1: state: is /var/lib/prism, but prismd runs with /tmp/a; \(restart)",
      ])
  }
}
