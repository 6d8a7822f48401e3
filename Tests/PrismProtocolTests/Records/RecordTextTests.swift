import PrismProtocol
import Testing

@Suite("Texts of records") struct RecordTextTests {
  @Test(
    "a merge patch changes an object as RFC 7396 says, appendix A",
    arguments: [
      (#"{"a":"b"}"#, #"{"a":"c"}"#, #"{"a":"c"}"#),
      (#"{"a":"b"}"#, #"{"b":"c"}"#, #"{"a":"b","b":"c"}"#),
      (#"{"a":"b"}"#, #"{"a":null}"#, #"{}"#),
      (#"{"a":"b","b":"c"}"#, #"{"a":null}"#, #"{"b":"c"}"#),
      (#"{"a":["b"]}"#, #"{"a":"c"}"#, #"{"a":"c"}"#),
      (#"{"a":"c"}"#, #"{"a":["b"]}"#, #"{"a":["b"]}"#),
      (#"{"a":{"b":"c"}}"#, #"{"a":{"b":"d","c":null}}"#, #"{"a":{"b":"d"}}"#),
      (#"{"a":[{"b":"c"}]}"#, #"{"a":[1]}"#, #"{"a":[1]}"#),
      (#"["a","b"]"#, #"["c","d"]"#, #"["c","d"]"#),
      (#"{"a":"b"}"#, #"["c"]"#, #"["c"]"#),
      (#"{"a":"foo"}"#, "null", "null"),
      (#"{"a":"foo"}"#, #""bar""#, #""bar""#),
      (#"{"e":null}"#, #"{"a":1}"#, #"{"e":null,"a":1}"#),
      ("[1,2]", #"{"a":"b","c":null}"#, #"{"a":"b"}"#),
      ("{}", #"{"a":{"bb":{"ccc":null}}}"#, #"{"a":{"bb":{}}}"#),
    ])
  func mergePatch(target: String, patch: String, result: String) throws {
    let merged = try JSONValue(parsing: target).merged(with: JSONValue(parsing: patch))
    #expect(merged == (try JSONValue(parsing: result)))
  }

  @Test(
    "two values say the same if only the order of members differs",
    arguments: [
      (#"{"a":1,"b":{"c":2,"d":[3]}}"#, #"{"b":{"d":[3],"c":2},"a":1}"#, true),
      (#"{"a":1}"#, #"{"a":1,"b":null}"#, false), (#"{"a":[1,2]}"#, #"{"a":[2,1]}"#, false),
      (#"{"a":1}"#, #"{"a":1.0}"#, false), (#"{"a":1}"#, #"{"b":1}"#, false),
    ])
  func sameness(one: String, other: String, isSame: Bool) throws {
    #expect(try JSONValue(parsing: one).says(the: JSONValue(parsing: other)) == isSame)
  }

  @Test("an operation's line is the documented one, and reads back") func operation() throws {
    let operation = RecordOperation(
      op: "x.0", table: RecordTableName("printer")!, id: RecordID("p1")!, serverID: RecordID("9017"), kind: .update,
      fields: ["paper": "low"], version: 3, changedTime: 1_763_700_000_000)
    let line =
      #"{"op":"x.0","table":"printer","id":"p1","serverId":"9017","type":"update","fields":{"paper":"low"},"#
      + #""version":3,"time":1763700000000}"#
    #expect(String(decoding: operation.line, as: UTF8.self) == line)
    #expect(RecordOperation(line: operation.line) == operation)
  }

  @Test(
    "a line that is no operation is not read",
    arguments: [
      "", "[]", #"{"op":"x"}"#, #"{"op":"","table":"t","id":"a","type":"delete","version":1,"time":1}"#,
      #"{"op":"x","table":"t","id":"a","type":"insert","version":1,"time":1}"#,
      #"{"op":"x","table":"t","id":"a","type":"insert","fields":[],"version":1,"time":1}"#,
      #"{"op":"x","table":"t","id":"a b","type":"delete","version":1,"time":1}"#,
      #"{"op":"x","table":".","id":"a","type":"delete","version":1,"time":1}"#,
      #"{"op":"x","table":"t","id":"a","type":"drop","version":1,"time":1}"#,
      #"{"op":"x","table":"t","id":"a","serverId":9,"type":"delete","version":1,"time":1}"#,
      #"{"op":"x","table":"t","id":"a","type":"delete","version":0,"time":1}"#,
    ])
  func noOperation(line: String) { #expect(RecordOperation(line: Array(line.utf8)) == nil) }

  @Test("an answer's ids and refusals read back; what is of another kind is ignored") func receipt() throws {
    let (table, id) = (RecordTableName("printer")!, RecordID("p1")!)
    let receipt = RecordReceipt(ids: [table: [id: RecordID("9017")!]], refused: [.init(op: "x.1", message: "no")])
    #expect(RecordReceipt(.object(receipt.members)) == receipt)
    let strange = try JSONValue(parsing: #"{"ids":{"printer":{"p1":7,"":"9"},"?":{}},"refused":[1,{"message":"m"}]}"#)
    #expect(RecordReceipt(strange) == RecordReceipt())
  }
}
