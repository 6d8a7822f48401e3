import PrismProtocol
import Testing

@testable import PrismClient

@Suite("A client that watches a table")
struct RecordWatchTests {
  private static let (shop, part) = (NamespaceName("shop")!, RecordTableName("part")!)
  private static let question = #"{"watch":{"namespace":"shop","table":"part"}}"#

  private static func line(_ kind: String, _ generation: Int, _ ids: String? = nil) -> ScriptedDaemon.Step {
    let ids = ids.map { #","ids":[\#($0)]"# } ?? ""
    return .write(#"{"\#(kind)":{"namespace":"shop","table":"part","generation":\#(generation)\#(ids)}}"# + "\n")
  }

  @Test("the changes are a sequence that goes on over restarts; only missed changes are sent after one")
  func restarts() async throws {
    let daemon = ScriptedDaemon([
      [.read(lines: 1), Self.line("watch", 7), Self.line("changed", 8, #""a""#)],
      [.read(lines: 1), Self.line("watch", 8)],  // nothing was missed
      [.read(lines: 1), Self.line("watch", 11), Self.line("changed", 12, #""b","c""#), .read(lines: 1)],
    ])
    let client = PrismClient(socket: daemon.path)
    var seen: [Int: [RecordID]?] = [:]
    for await change in client.changes(of: Self.part, in: Self.shop) {
      #expect(seen[change.generation] == nil, "told once")
      seen[change.generation] = .some(change.ids)
      if change.generation == 12 { break }
    }
    #expect(Set(seen.keys).isSubset(of: [7, 8, 11, 12]))
    #expect(seen[12]! == nil || seen[12]! == [RecordID("b")!, RecordID("c")!])
    #expect(seen[11].map { $0 == nil } ?? true, "it is not known which")
    #expect(Set(daemon.lines) == [Self.question])
  }

  @Test("a reader that is late gets the newest change without ids, so that it reads the whole table")
  func late() async throws {
    let daemon = ScriptedDaemon([
      [.read(lines: 1), Self.line("watch", 1)]
        + (2...50).map { Self.line("changed", $0, #""a""#) } + [Self.line("watch", 51), .read(lines: 1)]
    ])
    let client = PrismClient(socket: daemon.path)
    let changes = client.changes(of: Self.part, in: Self.shop)
    let feed = client.watches.changes(of: Self.part, in: Self.shop)
    while feed.last?.generation != 51 { await Task.yield() }  // nothing was taken until all have come
    for await change in changes {
      #expect(change == RecordChange(generation: 51, ids: nil))
      break
    }
  }

  @Test("a refused or ended watch is asked for again, and the sequence goes on when the table is there")
  func refused() async throws {
    let refusal = #"{"status":"refused","code":"unknown_table","message":"no"}"# + "\n"
    let ended = #"{"ended":{"namespace":"shop","table":"part","code":"forbidden","message":"no"}}"# + "\n"
    let daemon = ScriptedDaemon([
      [.read(lines: 1), .write(refusal)], [.read(lines: 1), .write(ended)],
      [.read(lines: 1), Self.line("watch", 3), .read(lines: 1)],
    ])
    let client = PrismClient(socket: daemon.path)
    for await change in client.changes(of: Self.part, in: Self.shop) {
      #expect(change.generation == 3)
      break
    }
  }

  @Test("a change on a condition says the version that the record must have; without one nothing is said")
  func condition() async throws {
    let stored = #"{"status":"stored","version":4}"# + "\n"
    let steps = (0..<4).flatMap { _ in [ScriptedDaemon.Step.read(lines: 1), .write(stored)] }
    let daemon = ScriptedDaemon([[.read(lines: 1), .write(PrismClientTests.greeting)] + steps])
    let client = PrismClient(socket: daemon.path)
    let id = RecordID("a")!
    #expect(try await client.put([:], as: id, in: Self.part, if: .version(3)) == 4)
    #expect(try await client.patch([:], of: id, in: Self.part, if: .absent) == 4)
    try await client.delete(id, in: Self.part, if: .present)
    #expect(try await client.put([:], as: id, in: Self.part) == 4)
    let asked = try daemon.lines.dropFirst().map { try JSONValue(parsing: $0).object!.first!.value["ifVersion"] }
    #expect(asked == [3, 0, "*", nil])
  }
}
