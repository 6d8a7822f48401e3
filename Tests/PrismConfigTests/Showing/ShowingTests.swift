import PrismConfig
import PrismProtocol
import Testing

@Suite("Showing a configuration")
struct ShowingTests {
  static let files = [
    "prismd.yaml": """
    common: {price: $$5, quote: "a \\" b: [c"}
    keys: [{id: k1, file: k1.key}]
    network: {interfaces: {"wl*": metered, "*": ignored}}
    remote: {url: "https://h", allow: []}
    """,
    "k1.key": FilesTests.key, "token": "tok3n-of-the-shop",
    "namespaces.d/shop.yaml": """
    url: https://collector.example.com
    monitorList: [{type: order, isRealtime: true}]
    authorization: {tokenFile: token}
    allow: {users: [root]}
    """,
  ]

  @Test("what is shown, read as files, is the same configuration")
  func roundTrip() throws {
    let folder = try ConfigurationFolder(Self.files)
    let loaded = try folder.load()
    let sections = loaded.text(origins: true).components(by: "# ")
    let copy = try ConfigurationFolder(sections)
    #expect(Set(sections.keys) == ["prismd.yaml", "namespaces.d/prism.yaml", "namespaces.d/shop.yaml"])
    #expect(try copy.load().snapshot == loaded.snapshot)
  }

  @Test("each value is shown with where it comes from")
  func origins() throws {
    let folder = try ConfigurationFolder(Self.files)
    let json = try folder.load().json(origins: true)
    let file = "\(folder.path)/namespaces.d/shop.yaml"
    #expect(
      json["namespaces"]?["shop"]?["url"] == ["value": "https://collector.example.com", "origin": .string("\(file):1")])
    #expect(json["namespaces"]?["shop"]?["authorization.tokenFile"]?["origin"] == .string("\(file):3"))
    #expect(json["namespaces"]?["shop"]?["maxItem"] == ["value": 1000, "origin": "default"])
    #expect(json["daemon"]?["keys"]?["value"] == [["id": "k1", "file": .string("\(folder.path)/k1.key")]])
  }

  @Test("no key, no token and no key's bytes are in anything that can be printed")
  func secrets() throws {
    let folder = try ConfigurationFolder(Self.files)
    let loaded = try folder.load()
    try folder.write("k1.key", String(repeating: "ab", count: 16))
    let rotated = try folder.load()
    let diff = SnapshotDiff(from: loaded.snapshot, to: rotated.snapshot)
    var dumped = ""
    dump(loaded, to: &dumped)
    let outputs = [
      loaded.text(origins: true), loaded.json(origins: true).text, "\(loaded)", String(reflecting: loaded), dumped,
      diff.lines.joined(), "\(diff)",
    ]
    for secret in [FilesTests.key, "tok3n", "abababab", "17, 34, 51"] {
      for output in outputs { #expect(!output.contains(secret)) }
    }
    #expect(diff.lines == ["prismd: keys: what the file holds is new"])
    #expect(diff.rekeyed.contains { $0.text == "shop" })
  }
}

extension String {
  /// The text after each line that names a YAML file in a comment, by that name.
  fileprivate func components(by mark: String) -> [String: String] {
    var result: [String: String] = [:]
    var name = ""
    for line in split(separator: "\n", omittingEmptySubsequences: false) {
      if line.hasPrefix(mark), line.hasSuffix(".yaml") {
        name = String(line.dropFirst(mark.count))
      } else {
        result[name, default: ""] += line + "\n"
      }
    }
    return result
  }
}
