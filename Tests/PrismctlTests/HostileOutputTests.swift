import Foundation
import PrismControl
import PrismProtocol
import Testing

@Suite("Output of foreign origin")
struct HostileOutputTests {
  /// A string as JSON: some controls escaped, the others as they are.
  private static let evil = "\"E\\u001b]0;owned\\u0007\\u001b[2J\u{9B}31m\u{202E}\u{2066}x\u{2069}\u{7F}\u{2028}\\r\""

  /// An answer that every command takes for its own, with the worst in every string.
  private static let answer = """
    {"status":{"version":§,"uptimeSeconds":1,"generation":1,"configFaults":[§],"faults":[§],"network":{"kind":§,"interface":§},
    "memory":{"residentBytes":1,"virtualBytes":1},"remote":{"url":§,"state":§,"lastApplied":{"number":1,"time":§},
    "lastFailed":{"number":2,"time":§,"reason":§},"failuresInRow":1,"cause":§,"nextAskInSeconds":1,"namespaces":[§],
    "probation":{§:{"triedSeconds":1}},"takenBack":[§]},"storeBytes":1,"store":{"state":§,"since":§,
    "takesReports":false,"cause":§,"faults":1,"setAside":1,"salvagedRows":1,"lostRows":1},
    "namespaces":{§:{"state":§,"circuit":§,"lastSuccess":null,"lastFailure":{"time":§,"status":400,"cause":§},
    "nextTryInSeconds":3,"flow":{"usedBytes":1,"allowedBytes":2,"windowEndsInSeconds":3},
    "meta":{"waiting":1,"dead":1,"oldestAgeSeconds":9999},"payload":{"waiting":1}}}},
    "network":{"kind":§,"interface":§,"reason":§},"text":§,"configuration":{§:§},"generation":1,"changes":[§],
    "rows":[{"namespace":§,"kind":§,"state":§,"createdTime":§,"packetId":§,"packetTime":§,"message":§,"time":§,
    "lastFailure":{"time":§,"status":400,"cause":§}}],"findings":[{"check":§,"result":"fault","text":§,"advice":§}],
    "dead":[{"id":1,"namespace":§,"kind":§,"type":§,"reportId":§,"packetId":§,"status":400,"message":§,"time":§,
    "attempts":1,"bytes":1}],"namespace":§,"kind":§,"meta":{§:§},"message":§,
    "report":{"time":§,"outcome":"refused","code":§,"namespace":§,"type":§,"reportId":§,"metaBytes":1,
    "payloadBytes":1},"removed":1,"requeued":1,"dropped":1,"done":true}
    """.replacing("\n", with: "").replacing("§", with: evil)

  private static let commands: [[String]] = [
    ["status"], ["top", "--once"], ["tail"], ["doctor"], ["flush", "shop"], ["reload"], ["network"],
    ["explain", "shop"],
    ["trace", "r"], ["dead", "list"], ["dead", "show", "1"], ["dead", "requeue", "1"], ["dead", "drop", "1"],
    ["remove", "--namespace", "shop", "--all", "--yes"], ["export"], ["config", "show"], ["config", "diff", "/x"],
  ]
  private static let withoutJSON: Set = ["top", "export"]

  @Test(
    "no command prints a control character of an answer, with --json neither", arguments: commands, [false, true])
  func everyCommand(command: [String], isJSON: Bool) throws {
    let daemon = try HostileDaemon { request in
      request.command == .deadList && request["after"]?.int != 0 ? #"{"dead":[],"done":true}"# : Self.answer
    }
    let words = command + (isJSON && !Self.withoutJSON.contains(command[0]) ? ["--json"] : [])
    let ran = try Tool(Tool.built("prismctl"), ["--control", daemon.path] + words)
    #expect(!words.contains("--json") || ran.output.contains("owned"), "\(ran.output)")
    #expect(ran.output.printableLines == ran.output, "\(words): \(ran.output.printable)")
  }

  @Test("nor what an error says", arguments: commands) func errors(command: [String]) throws {
    let daemon = try HostileDaemon { _ in
      #"{"error":{"message":§,"exitCode":69},"done":true}"#.replacing("§", with: Self.evil)
    }
    let ran = try Tool(Tool.built("prismctl"), ["--control", daemon.path] + command)
    #expect(ran.output.printableLines == ran.output, "\(ran.output.printable)")
  }
}
