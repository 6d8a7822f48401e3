import PrismBase
import PrismProtocol
import Testing

@testable import PrismCollector

@Suite("Expressions that choose devices")
struct DeviceExpressionTests {
  private static let now: Int64 = 1_700_000_000_000
  private static let day: Int64 = 86_400_000

  private static var till: DeviceSummary {
    let streams = [
      DeviceStream(
        device: "till-0007", namespace: "shop", kind: "meta", packets: 12, receivedTime: now - 3 * day,
        ledger: "epoch=1;stored=10;delivered=4;expired=2;carried=1"),
      DeviceStream(
        device: "till-0007", namespace: "kiosk", kind: "meta", packets: 1, receivedTime: now - 9 * day, ledger: nil),
    ]
    var device = DeviceSummary.all(of: streams)[0]
    device.add(DeviceFacts.Facts(app: "till", version: "2.9", crashTime: now - 3_600_000, notedTime: 1))
    device.tags = ["region": "eu-west", "ring": "early", "floor": "2"]
    return device
  }

  @Test(
    "a condition holds for what is known of a device",
    arguments: [
      ("device = till-0007", true), ("device = till-*", true), ("device = till", false), ("device ~ 000", true),
      ("tag.region = eu-*", true), ("tag.region = us-*", false), ("tag.region != us", true), ("tag.lab", false),
      ("tag.lab != x", false), ("not tag.lab = x", true), ("tag.ring", true), ("app = till", true), ("app", true),
      ("version < 2.10", true), ("version >= 2.10", false), ("version <= 2.9", true), ("version > 2.8.4", true),
      ("version = 2.9", true), ("version = 2.*", true), ("version != 2.9", false), ("namespace = kiosk", true),
      ("namespace != kiosk", false), ("namespace = other", false), ("seen > 2d", true), ("seen > 3d", false),
      ("seen >= 3d", true), ("seen < 1w", true), ("crash < 24h", true), ("crash > 90m", false), ("crash", true),
      ("waiting = 3", true), ("waiting > 3", false), ("lost > 0", true), ("lost != 2", false), ("packets >= 13", true),
    ] as [(String, Bool)])
  func conditions(text: String, holds: Bool) throws {
    #expect(try DeviceExpression(text).includes(Self.till, now: Self.now) == holds)
  }

  @Test(
    "`not` binds before `and`, `and` before `or`, and parentheses before all",
    arguments: [
      ("tag.ring = early and lost = 2", true), ("tag.ring = late and lost = 2 or app = till", true),
      ("app = till or tag.ring = late and lost = 0", true), ("(app = till or tag.ring = late) and lost = 0", false),
      ("not tag.ring = late and lost = 2", true), ("not (tag.ring = early and lost = 2)", false),
      ("not not lost = 2", true), ("  tag.region=\"eu-west\"\n and\tlost=2 ", true), ("tag.ring = \"and\"", false),
    ] as [(String, Bool)])
  func order(text: String, holds: Bool) throws {
    #expect(try DeviceExpression(text).includes(Self.till, now: Self.now) == holds)
  }

  @Test("nothing is known of a device that said nothing: no comparison holds")
  func unknown() throws {
    let device = DeviceSummary(device: "d")
    for text in ["version < 2", "version != 1", "app ~ a", "crash > 1s", "crash", "tag.a != b", "namespace = shop"] {
      #expect(try !DeviceExpression(text).includes(device, now: Self.now), "\(text)")
    }
    #expect(try DeviceExpression("seen > 100d").includes(device, now: Self.now))
  }

  @Test(
    "a fault says what is wrong, and where",
    arguments: [
      ("", "ends where a condition must be"),
      ("region = eu", "facts are device, tag.NAME"), ("tag. = eu", "facts are"),
      ("tag.a b = c", "has `b` at character 7"), ("seen", ""), ("seen > 7", "must be an age"),
      ("seen > -1d", "must be an age"),
      ("seen > 99999999999d", "must be an age"), ("seen ~ 7d", "takes = != < <= > >="),
      ("lost > many", "a whole number"), ("app < b", "takes =, != and ~"), ("version < new", "begins with numbers"),
      ("tag.a = b tag.c = d", "has `tag.c` at character 11"), ("(lost = 1", "lacks a `)`"), ("lost = 1)", "has `)`"),
      ("lost =", "ends where the value"), ("lost = (", "a value"), ("tag.a = \"b", "without a second one"),
      ("lost ! 1", "has `!` at character 6"), ("and lost = 1", "facts are"), ("not", "ends where a condition"),
      ("= 1", "a condition, such as"), (String(repeating: "(", count: 100), "parentheses"),
      (Array(repeating: "lost = 1", count: 33).joined(separator: " or "), "over 32 conditions"),
      (String(repeating: "x", count: 2049), "over 2048 bytes"),
    ] as [(String, String)])
  func faults(text: String, reason: String) {
    do {
      _ = try DeviceExpression(text)
      #expect(reason.isEmpty, "\(text)")
    } catch { #expect(!reason.isEmpty && error.reason.contains(reason), "\(text): \(error.reason)") }
  }
}
