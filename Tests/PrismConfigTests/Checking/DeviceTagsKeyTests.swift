import PrismProtocol
import Testing

@testable import PrismConfig

@Suite("device.tags") struct DeviceTagsKeyTests {
  @Test(
    "a faulty tag is a fault at its place",
    arguments: [
      ("{my region: eu}", "device.tags.my region: is no name of an entry"), ("{a: {b: c}}", "device.tags.a: is a map"),
      ("{a: \"\"}", "device.tags.a: is"), ("[a]", "device.tags: is a list, must be a map like {region: eu}"),
      (
        "{" + (1...33).map { "t\($0): x" }.joined(separator: ", ") + "}",
        "device.tags: is a map, must be a map like {region: eu}; at most 32 names"
      ),
    ])
  func faults(tags: String, fault: String) throws {
    let folder = try ConfigurationFolder(["prismd.yaml": "device: {tags: \(tags)}\n"])
    #expect(folder.faultLines().contains { $0.contains(fault) }, "\(folder.faultLines())")
  }

  @Test("tags make the built-in table in each namespace that has a url, and an empty map does, too")
  func table() throws {
    for (tags, values) in [("{region: eu, floor: 2}", ["region": "eu", "floor": "2"]), ("{}", [:])] {
      let folder = try ConfigurationFolder([
        "prismd.yaml": "device: {tags: \(tags)}\nkeys: [{id: k, file: k.key}]\n",
        "k.key": String(repeating: "0", count: 32) + "\n",
        "namespaces.d/shop.yaml": "url: https://a.test\nmonitorList: [{type: order}]\n",
        "namespaces.d/local.yaml": "monitorList: [{type: order}]\n",
      ])
      let snapshot = try folder.load().snapshot
      #expect(snapshot.daemon.deviceTags?.values == values)
      let tables = snapshot.namespaces.mapValues { $0.tables.map(\.name) }
      #expect(tables[NamespaceName("shop")!] == [.tags] && tables[NamespaceName("local")!] == [])
    }
  }
}
