import PrismConfig
import PrismProtocol
import Testing

@Suite("A folder of remote configuration")
struct RemoteFolderTests {
  private func read(_ files: [String: String]) throws -> [RemoteNamespace] {
    let folder = try ConfigurationFolder(files)
    return try withExtendedLifetime(folder) { try RemoteFolder.read(folder.path) }
  }

  @Test("is read as devices get it, from YAML and from JSON")
  func read() throws {
    let entries = try read([
      "shop.yaml": "appVersion: 1.10\nisUpload: true\nmonitorList: [{type: order, onlyWifi: false}]\n",
      "pay.json": #"{"maxItem": 5, "onlyWifi": true}"#, ".hidden.yaml": "x: y", "notes.txt": "none of ours",
    ])
    #expect(
      entries.map(\.json.text) == [
        #"{"name":"pay","delFlag":0,"maxItem":5,"onlyWifi":true}"#,
        #"{"name":"shop","delFlag":0,"appVersion":1.10,"isUpload":true,"#
          + #""monitorList":[{"type":"order","onlyWifi":false}]}"#,
      ])
    for entry in entries { #expect(try RemoteNamespace(parsing: entry.json) == entry) }
  }

  @Test(
    "is refused with every fault, its file and line",
    arguments: [
      (
        "shop.yaml", "maxItm: 5\nkeyId: k\n",
        ["1: maxItm: is unknown; did you mean maxItem?", "2: keyId: can never be set remotely"]
      ),
      ("shop.yaml", "tls: {caFile: /x}\n", ["1: tls: can never be set remotely"]),
      ("shop.yaml", "maxItem: 10001\n", ["1: maxItem: is 10001, must be 1...10000"]),
      ("shop.yaml", "a: *b\n", ["1: YAML: an alias (*name) is not taken; write the value itself", "1: a: is unknown"]),
      ("shop.yaml", "- a\n", ["1: file: is a list, must be a map of keys"]),
      ("a b.yaml", "", ["1: file: is named a b, must be a namespace's name: 1 to 64 of A-Z a-z 0-9 _ -"]),
    ])
  func refused(name: String, text: String, faults: [String]) throws {
    let error = #expect(throws: ConfigurationFaults.self) { try read([name: text]) }
    let lines = (error?.faults ?? []).map { "\($0.line): \($0.key): \($0.message)" }
    #expect(lines.count == faults.count)
    for (line, fault) in zip(lines, faults) { #expect(line.hasPrefix(fault)) }
  }

  @Test("that isn't there is a fault")
  func missing() {
    let error = #expect(throws: ConfigurationFaults.self) { try RemoteFolder.read("/nowhere") }
    #expect(error?.description == "/nowhere:1: file: there is no such folder")
  }
}
