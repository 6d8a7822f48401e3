import PrismProtocol
import Testing

@Suite("Changes that come down") struct DownLineTests {
  private static let table = RecordTableName("price")!

  private static func operation(_ sequence: Int64, _ table: String = "price") -> DownOperation {
    DownOperation(
      sequence: sequence, op: "o\(sequence)", table: RecordTableName(table)!, id: RecordID("sku-1")!, kind: .delete,
      time: 5)
  }

  private static func record(_ id: String) -> DownRecord {
    DownRecord(id: RecordID(id)!, fields: Array(#"{"n":1}"#.utf8), time: 7)
  }

  private static func text(_ line: DownLine) -> String { String(decoding: line.bytes, as: UTF8.self) }

  @Test("lines are the documented ones, and read back")
  func lines() {
    var insert = Self.operation(18)
    (insert.kind, insert.fields, insert.localID) = (.insert, Array(#"{"a":[1,{"b":null}]}"#.utf8), RecordID("s\"1"))
    insert.dependsOn = "o17"
    let cases: [(DownLine, String)] = [
      (.head(DownHead(isFull: true, sequence: 4711, count: 25_000)), #"{"full":true,"seq":4711,"count":25000}"#),
      (.head(DownHead(isFull: false, sequence: 0, count: 0)), #"{"full":false,"seq":0,"count":0}"#),
      (.operation(Self.operation(3)), #"{"seq":3,"op":"o3","table":"price","id":"sku-1","type":"delete","time":5}"#),
      (
        .operation(insert),
        #"{"seq":18,"op":"o18","table":"price","id":"sku-1","localId":"s\"1","type":"insert","#
          + #""fields":{"a":[1,{"b":null}]},"dependsOn":"o17","time":5}"#
      ),
      (.record(Self.record("a")), #"{"id":"a","fields":{"n":1},"time":7}"#),
    ]
    for (line, text) in cases {
      #expect(Self.text(line) == text)
      #expect(DownLine(line.bytes) == line)
    }
    let spaced = #" {"time" : 7 , "new":[{}],"fields": {"n":1},"id":"\u0061" }"#.dropFirst()
    #expect(DownLine(Array(spaced.utf8)) == .record(Self.record("a")))
  }

  @Test(
    "a line that is not one of the three is not read",
    arguments: [
      "", "[]", "{}", "null", #"{"full":true}"#, #"{"full":1,"seq":1,"count":1}"#,
      #"{"full":true,"seq":-1,"count":1}"#, #"{"full":true,"seq":1,"count":-1}"#, #"{"full":true,"seq":1.0,"count":1}"#,
      #"{"full":true,"seq":99999999999999999999,"count":1}"#, #"{"full":true,"full":true,"seq":1,"count":1}"#,
      #"{"full":true,"seq":1,"count":1} x"#, #"{"full":true,"seq":1,"count":1"#,
      #"{"id":"a","fields":[],"time":7}"#, #"{"id":"a","time":7}"#, #"{"id":"a b","fields":{},"time":7}"#,
      #"{"id":"a","fields":{},"time":"7"}"#, #"{"id":"a","fields":{"x":},"time":7}"#,
      #"{"id":"a","localId":null,"fields":{},"time":7}"#, #"{"id":7,"fields":{},"time":7}"#,
      #"{"seq":0,"op":"o","table":"t","id":"a","type":"delete","time":5}"#,
      #"{"seq":1,"op":"","table":"t","id":"a","type":"delete","time":5}"#,
      #"{"seq":1,"op":"o","table":"/","id":"a","type":"delete","time":5}"#,
      #"{"seq":1,"op":"o","table":"t","id":"a","type":"drop","time":5}"#,
      #"{"seq":1,"op":"o","table":"t","id":"a","type":"insert","time":5}"#,
      #"{"seq":1,"op":"o","table":"t","id":"a","type":"delete","dependsOn":7,"time":5}"#,
      #"{"seq":1,"op":"o","table":"t","id":"a","type":"delete","localId":"","time":5}"#,
    ])
  func noLine(text: String) { #expect(DownLine(Array(text.utf8)) == nil) }

  @Test("a line, its fields and their depth are bounded, and it is UTF-8") func bounds() {
    func line(_ fields: String, _ rest: String = "") -> DownLine? {
      DownLine(Array(#"{"id":"a","fields":\#(fields),"time":7\#(rest)}"#.utf8))
    }
    let most = #"{"x":"\#(String(repeating: "x", count: RecordRequest.fieldsBytesMax - 8))"}"#
    #expect(line(most) != nil)
    #expect(line(most.replacing("\"}", with: "x\"}")) == nil)
    #expect(line("{}", #","y":"\#(String(repeating: "y", count: DownLine.bytesMax))""#) == nil)
    let deep = String(repeating: #"{"x":"#, count: 63) + "1" + String(repeating: "}", count: 63)
    #expect(line(deep) != nil)
    #expect(line(#"{"x":\#(deep)}"#) == nil)
    #expect(DownLine(Array(#"{"id":"a","fields":{"x":""#.utf8) + [0xFF] + Array(#""},"time":7}"#.utf8)) == nil)
  }

  // MARK: Answers

  private static func read(_ lines: [DownLine], after: Int64?) throws(DownFault) -> Int64 {
    var reading = DownReading(table: table, after: after)
    for line in lines { _ = try reading.read(line.bytes) }
    return try reading.finish()
  }

  private static func head(_ isFull: Bool, _ sequence: Int64, _ count: Int) -> DownLine {
    .head(DownHead(isFull: isFull, sequence: sequence, count: count))
  }

  @Test("an honest answer is read, and says where the next question goes on")
  func honest() throws {
    let (three, nine) = (DownLine.operation(Self.operation(3)), DownLine.operation(Self.operation(9)))
    let (a, b) = (DownLine.record(Self.record("a")), DownLine.record(Self.record("b")))
    #expect(try Self.read([Self.head(true, 9, 2), a, b], after: nil) == 9)
    #expect(try Self.read([Self.head(true, 0, 0)], after: nil) == 0)
    #expect(try Self.read([Self.head(true, 2, 1), a], after: 8) == 2)
    #expect(try Self.read([Self.head(false, 9, 0)], after: 9) == 9)
    #expect(try Self.read([three, nine], after: 2) == 9)
    #expect(try Self.read([Self.head(false, 11, 2), three, nine], after: 0) == 11)
  }

  @Test("an answer that no honest server sends is refused")
  func dishonest() throws {
    let (three, nine) = (DownLine.operation(Self.operation(3)), DownLine.operation(Self.operation(9)))
    let a = DownLine.record(Self.record("a"))
    let cases: [([DownLine], Int64?, DownFault)] = [
      ([], nil, .count), ([], 3, .count), ([three], nil, .notFull), ([Self.head(false, 9, 0)], nil, .notFull),
      ([Self.head(true, 9, 1)], nil, .count), ([Self.head(true, 9, 0), a], nil, .count), ([a], 3, .line),
      ([Self.head(true, 9, 1), three], nil, .line), ([Self.head(false, 9, 1), a], 2, .line),
      ([Self.head(true, 9, 1), Self.head(true, 9, 1)], nil, .line), ([three, Self.head(false, 9, 1)], 2, .line),
      ([three], 3, .order), ([nine, three], 2, .order), ([three, three], 2, .order),
      ([Self.head(false, 2, 0)], 3, .order), ([Self.head(false, 8, 1), nine], 3, .order),
      ([Self.head(false, 9, 1), three, nine], 2, .count), ([Self.head(false, 9, 2), three], 2, .count),
      ([.operation(Self.operation(3, "other"))], 2, .table),
      ((1...1001).map { .operation(Self.operation($0)) }, 0, .count),
    ]
    for (lines, after, fault) in cases {
      #expect(throws: fault, "\(lines.prefix(3).map(Self.text)) after \(after ?? -1)") {
        try Self.read(lines, after: after)
      }
    }
    #expect(DownFault.allCases.allSatisfy { !$0.message.isEmpty })
  }

  @Test(
    "the change that holds is the one that the rule names, the server's on a tie",
    arguments: [
      (RecordConflict.newest, 5, 4, true), (.newest, 5, 5, false), (.newest, 4, 5, false), (.local, 4, 5, true),
      (.remote, 5, 4, false),
    ])
  func conflicts(rule: RecordConflict, here: Int64, there: Int64, keepsLocal: Bool) {
    #expect(rule.keepsLocal(changedHere: here, changedThere: there) == keepsLocal)
  }
}
