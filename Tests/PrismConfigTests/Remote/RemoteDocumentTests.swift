import PrismConfig
import PrismProtocol
import Testing

@Suite("A document of remote configuration")
struct RemoteDocumentTests {
  @Test("is read as it was written")
  func roundTrip() throws {
    let shop = RemoteNamespace(name: NamespaceName("shop")!, keys: [.init("maxItem", 5)])
    let gone = RemoteNamespace(name: NamespaceName("gone")!, isRemoved: true, keys: [])
    for document in [
      RemoteDocument(namespaces: [shop, gone], updateTime: 7, isFull: false, version: 8, since: 6),
      RemoteDocument(namespaces: [], updateTime: 0, isFull: true),
    ] {
      #expect(try RemoteDocument(parsing: document.json.bytes) == document)
    }
  }

  @Test("needs no more than its namespaces and their time")
  func least() throws {
    let document = try RemoteDocument(parsing: Array(#"{"namespaces":[],"updateTime":9}"#.utf8))
    #expect(document == RemoteDocument(namespaces: [], updateTime: 9, isFull: false))
    #expect(document.number == 9)
  }

  @Test(
    "is refused by name",
    arguments: [
      ("[", "remote: data: is not JSON at byte 1: the text ends where a value is expected"),
      ("[]", "remote: data: must be a map"),
      (
        #"{"namespaces":[],"updateTime":1,"daemon":{}}"#,
        "remote: daemon: is unknown; remote configuration sets keys of namespaces only"
      ),
      (#"{"namespaces":[]}"#, "remote: updateTime: is missing, must be a whole number, 0 or more"),
      (#"{"namespaces":[],"updateTime":-1}"#, "remote: updateTime: must be a whole number, 0 or more"),
      (#"{"namespaces":[],"updateTime":1.5}"#, "remote: updateTime: must be a whole number, 0 or more"),
      (#"{"namespaces":[],"updateTime":1,"full":1}"#, "remote: full: must be true or false"),
      (#"{"namespaces":[],"updateTime":1,"version":"2"}"#, "remote: version: must be a whole number, 0 or more"),
      (#"{"namespaces":{},"updateTime":1}"#, "remote: namespaces: must be a list of maps"),
      (#"{"updateTime":1}"#, "remote: namespaces: must be a list of maps"),
      (#"{"namespaces":[{"name":"a"},{"name":"a"}],"updateTime":1}"#, "remote: a: occurs twice"),
    ])
  func refused(text: String, fault: String) throws {
    let faults = #expect(throws: ConfigurationFaults.self) { try RemoteDocument(parsing: Array(text.utf8)) }
    #expect(faults?.description == fault)
  }

  @Test("of a million values is not built in memory")
  func values() throws {
    let text = "[" + String(repeating: "[],", count: 1_000_000) + "0]"
    let faults = #expect(throws: ConfigurationFaults.self) { try RemoteDocument(parsing: Array(text.utf8)) }
    #expect(faults?.description.contains("over 250000 values") == true)
  }
}
