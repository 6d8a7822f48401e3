import PrismProtocol
import Testing

@Suite("Names and ids")
struct NameTests {
  @Test("a namespace's name", arguments: ["prism", "a", "0", "Shop_1-x", String(repeating: "n", count: 64)])
  func namespace(text: String) {
    #expect(NamespaceName(text)?.text == text)
  }

  @Test(
    "no namespace's name",
    arguments: ["", "_a", "-a", "a.b", "a b", "ä", "a/b", "a\n", String(repeating: "n", count: 65)])
  func noNamespace(text: String) {
    #expect(NamespaceName(text) == nil)
  }

  @Test("a type's name may have dots and colons, 128 bytes, but begins with a letter or digit")
  func type() {
    #expect(ReportType("apm.page:load-1")?.text == "apm.page:load-1")
    #expect(ReportType(String(repeating: "t", count: 128)) != nil)
    for text in ["", ".a", ":a", "a/b", String(repeating: "t", count: 129)] { #expect(ReportType(text) == nil) }
  }

  @Test("a client's report id may begin with a dash")
  func reportID() {
    #expect(ReportID("-_A9")?.text == "-_A9")
    #expect(ReportID("a.b") == nil)
    #expect(ReportID(String(repeating: "x", count: 65)) == nil)
  }

  @Test("a packet's id is a UUID of version 7 that begins with the time")
  func packetID() {
    var random = SystemRandomNumberGenerator()
    let id = PacketID(unixMilliseconds: 0x0193_2e6a_7c00, using: &random)
    let text = id.description
    #expect(text.hasPrefix("01932e6a-7c00-7"))
    #expect("89ab".contains(Array(text)[19]))
    #expect(PacketID(text) == id)
    #expect(PacketID(text.uppercased()) == id)
    #expect(PacketID(bytes: id.bytes) == id)
  }

  @Test(
    "what is no UUID is refused",
    arguments: [
      "", "01932e6a7c007abc8def0123456789ab", "01932e6a-7c00-7abc-8def-0123456789a",
      "01932e6a-7c00-7abc-8def-0123456789aé",
    ])
  func noPacketID(text: String) {
    #expect(PacketID(text) == nil)
  }

  @Test("a row's own report id leads back to the row, under its epoch only", arguments: Priority.allCases)
  func rowID(priority: Priority) {
    let epoch = "0123456789abcdef0123"
    let row = RowID(priority: priority, sequence: 1 << 40)
    let id = row.reportID(epoch: epoch)
    #expect(ReportID(id) != nil)
    #expect(id.utf8.count == RowID.reportIDBytes)
    #expect(RowID(reportID: id, epoch: epoch) == row)
    #expect(row.priority == priority && row.sequence == 1 << 40)
    #expect(RowID(reportID: id, epoch: "f123456789abcdef0123") == nil)
  }

  @Test("ids order rows as they leave: crashes, realtime types, the rest, oldest first in each")
  func order() {
    let rows = Priority.allCases.flatMap { priority in [1, 2].map { RowID(priority: priority, sequence: $0) } }
    #expect(rows == rows.sorted())
  }
}
