import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismConfig

/// `keep: ring` and `triggers` (docs/recorder.md).
@Suite struct RecorderKeyTests {
  private static let list = "monitorList: [{type: log, keep: ring}, {type: order}]\n"

  private static func faults(_ text: String) throws -> [String] {
    let folder = try ConfigurationFolder(["prismd.yaml": "", "namespaces.d/shop.yaml": text])
    return folder.faultLines()
  }

  @Test("a trigger is read as it was written")
  func trigger() throws {
    let keys = "name: slow, on: order, field: ms, from: 5, before: 9, same: APP_NAME, maxDevices: 50"
    let text = Self.list + "triggers: [{\(keys)}]\n"
    let folder = try ConfigurationFolder(["prismd.yaml": "", "namespaces.d/shop.yaml": text])
    let namespaces = try folder.load().snapshot.namespaces
    let trigger = try #require(namespaces.first { $0.key.text == "shop" }?.value.triggers.first)
    #expect(trigger.condition == .range(5...Int.max) && trigger.field == "ms" && trigger.before == 9)
    #expect(trigger.same == "APP_NAME" && trigger.bytesMax == 10 << 20 && trigger.everySeconds == 60)
    #expect(trigger.devicesMax == 50)
  }

  @Test(
    "a rule that can't be meant is a fault that names its place",
    arguments: [
      ("monitorList: [{type: appCrash, keep: ring}]", "a crash leaves at once"),
      ("monitorList: [{type: log, keep: ring, isRealtime: true}]", "must be queue"),
      (list + "triggers: [{name: a, on: order}]", "lets reports go `before` or `after`"),
      (list + "triggers: [{name: a, on: order, before: 1, field: x}]", "has no condition"),
      (list + "triggers: [{name: a, on: order, before: 1, equals: x}]", "needs the member"),
      (list + "triggers: [{name: a, on: order, before: 1, field: x, equals: y, from: 1}]", "the only one"),
      (list + "triggers: [{name: a, on: order, before: 1, field: x, from: 2, to: 1}]", "is more than"),
      (list + "triggers: [{name: a, on: order, before: 1}, {name: a, on: order, before: 1}]", "another trigger"),
      (list + "triggers: [{name: a, on: nothing, before: 1}]", "must be a type of monitorList"),
      (list + "triggers: [{name: a, on: order, before: 1, maxDevices: 0}]", "1...1000000"),
      (list + "triggers: [{name: a b, on: order, before: 1}]", "1 to 64"),
      ("monitorList: [{type: order}]\ntriggers: [{name: a, on: order, before: 1}]", "keep: ring"),
    ])
  func faults(text: String, says: String) throws {
    let faults = try Self.faults(text + "\n")
    #expect(faults.contains { $0.contains(says) }, "\(faults)")
  }
}
