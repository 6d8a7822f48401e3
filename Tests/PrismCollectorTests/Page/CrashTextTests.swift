import Foundation
import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismCollector

/// The texts of Tests/CrashTexts, as runtimes wrote them.
@Suite("Texts of crashes keep their frames")
struct CrashTextTests {
  private static let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../CrashTexts")

  static func text(_ name: String) throws -> String {
    try String(contentsOf: folder.appending(path: "\(name).txt"), encoding: .utf8)
  }

  private static func key(_ frames: [CrashFrame]) -> [String] { CrashFingerprint.parts(frames) }

  private static let expected: [(String, Int, [String])] = [
    ("python-chained", 6, ["price", "<genexpr> cart.py", "total", "pay", "<module> cart.py", "price"]),
    ("python-faulthandler", 4, ["poke", "main", "<module> fh.py"]),
    ("python-group", 7, ["charge", "pay", "<module> grp.py"]), ("python-recursion", 4, ["walk", "<module> rec.py"]),
    ("python-thread", 3, ["work"]), ("node-cause", 15, ["pay", "main", "cart.js", "Cart.total", "pay", "main"]),
    ("node-event", 8, ["fail", "Timeout._onTimeout", "fail", "Timeout._onTimeout"]),
    (
      "node-rejection", 3,
      ["throwUnhandledRejectionsMode", "processPromiseRejections", "process.processTicksAndRejections"]
    ),
    (
      "java-cause", 33,
      [
        "com.acme.Shop$Cart.price", "com.acme.Shop$Cart.total", "com.acme.Shop.pay", "com.acme.Shop.lambda$main$",
        "com.acme.Shop$Cart.price", "com.acme.Shop$Cart.total",
      ]
    ), ("rust-thread", 14, rust), ("rust-full", 42, rust),
    ("go-signal", 3, ["github.com/acme/shop.(*Cart).Total", "github.com/acme/shop.Pay", "main.work.func1"]),
    ("go-deadlock", 2, ["main.take", "main.main"]), ("systemd-threads", 4, ["shop::Cart::total"]),
  ]
  private static let rust = [
    "shop::Cart::total::{closure}", "shop::Cart::total", "shop::pay", "shop::main::{closure}",
  ]

  @Test(
    "each text has these frames and this key, as payload, as a message of a log, and as a line of syslog",
    arguments: expected)
  func forms(name: String, count: Int, key: [String]) throws {
    let text = try Self.text(name)
    let frames = CrashStack.frames(meta: ["reason": "crash"], payload: Array(text.utf8))
    #expect(frames.count == count && Self.key(frames) == key)
    #expect(CrashStack.frames(meta: ["message": .string(text)], payload: nil) == frames)
    #expect(CrashStack.frames(meta: ["MESSAGE": .string(text.replacing("\n", with: "#012"))], payload: nil) == frames)
  }

  @Test("a message of one line is no stack, and a stack of its own counts before a message")
  func messages() {
    #expect(CrashStack.frames(meta: ["message": "at total (cart.js:7:3)"], payload: nil).isEmpty)
    let meta: JSONValue = ["stack": ["pay"], "message": "no price\n    at total (cart.js:7:3)"]
    #expect(CrashStack.frames(meta: meta, payload: nil).map(\.text) == ["pay"])
  }

  @Test("faulthandler's fault is read of the thread that it calls the current one")
  func faulthandler() {
    let text = """
      Fatal Python error: Aborted

      Thread 0x00007f10 (most recent call first):
        File "/srv/shop/idle.py", line 2 in wait

      Current thread 0x00007f20 (most recent call first):
        File "/srv/shop/cart.py", line 3 in poke
        File "/srv/shop/cart.py", line 9 in <module>
      """
    #expect(Self.key(CrashStack.frames(of: text)) == ["poke", "<module> cart.py"])
  }

  @Test("a crash in one function of the app is of its program, in all builds: many have a function with that name")
  func oneFunction() {
    func fingerprint(_ module: String) -> CrashFingerprint {
      let frames = CrashStack.frames(of: "#0  0x000055d0c3a011c9 main (\(module) + 0x1f2c)")
      return CrashFingerprint(type: "appCrash", text: "", frames: frames)
    }
    #expect(fingerprint("/usr/bin/till") == fingerprint("/opt/till"))
    #expect(fingerprint("till-1.2") == fingerprint("till-1.10"))
    #expect(fingerprint("/usr/bin/till") != fingerprint("/usr/bin/scale"))
  }

  @Test("similar groups share functions, those with most first; no groups are similar by a main alone")
  func similar() async throws {
    let rig = try PageRig()
    let stacks = [
      ["price", "total", "main"], ["tax", "price", "total", "main"], ["drawer", "total"], ["print", "main"],
    ]
    for (number, stack) in stacks.enumerated() {
      let frames = stack.map { "\"\($0) ()\"" }.joined(separator: ",")
      let packet = try StoreRig.packet([number], type: "appCrash", members: { _ in "\"frames\":[\(frames)]" })
      _ = try await rig.collector.store.take(packet)
    }
    let groups = try #require(try await rig.json("/crashes", [("since", "0")])["groups"]?.array)
    let group = try #require(groups.first { $0["frame"]?.string?.hasPrefix("price") == true })
    let found = try await rig.json("/crashes/\(group["fingerprint"]?.string ?? "")")
    #expect(found["similar"]?.array?.map { $0["frame"]?.string } == ["tax ()", "drawer ()"])
    #expect(found["similar"]?.array?.map { $0["shared"] } == [2, 1] && found["isWhole"] == true)
  }
}
