import Foundation
import PrismOutputs
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
    (
      "python-chained", 6,
      ["price cart.py", "<genexpr> cart.py", "total cart.py", "pay cart.py", "<module> cart.py", "price cart.py"]
    ),
    ("python-faulthandler", 4, ["poke fh.py", "main fh.py", "<module> fh.py"]),
    ("python-group", 7, ["charge grp.py", "pay grp.py", "<module> grp.py"]),
    ("python-recursion", 4, ["walk rec.py", "<module> rec.py"]),
    ("python-thread", 3, ["work thr.py"]),
    (
      "node-cause", 15, ["pay cart.js", "main cart.js", "cart.js", "Cart.total cart.js", "pay cart.js", "main cart.js"]
    ),
    ("node-event", 8, ["fail late.js", "Timeout._onTimeout late.js"]),
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
    ("go-signal", 3, ["github.com/acme/shop.(*Cart).Total", "github.com/acme/shop.Pay", "main.work.func"]),
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
    #expect(Self.key(CrashStack.frames(of: text)) == ["poke cart.py", "<module> cart.py"])
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

  @Test("a crash without the name of its app is of the program that crashed, also where it has no frame")
  func program() {
    let fingerprint = { (members: String) in
      CrashReport(
        StoredReport(
          id: 1, device: "d", namespace: "shop", kind: "meta", type: "appCrash", reportID: "r", receivedTime: 1,
          packetID: "", chainIsBroken: false, meta: Array("{\"reason\":\"SIGSEGV\",\(members)}".utf8))
      ).fingerprint
    }
    let wild = #""frames":[{"address":"0x41414141"}]"#
    #expect(fingerprint(#"\#(wild),"program":"/usr/bin/till""#) != fingerprint(#"\#(wild),"program":"/usr/bin/scale""#))
    #expect(fingerprint(#"\#(wild),"program":"/usr/bin/till""#) == fingerprint(#"\#(wild),"program":"/opt/till""#))
    #expect(fingerprint(#"\#(wild),"APP_NAME":"a""#) != fingerprint(#"\#(wild),"APP_NAME":"b""#))
    let go = #""stack":["main.main()"]"#
    #expect(fingerprint(#"\#(go),"SYS_PEER_EXE":"/srv/a""#) != fingerprint(#"\#(go),"SYS_PEER_EXE":"/srv/b""#))
    #expect(fingerprint(#"\#(go),"APP_NAME":"x","SYS_PEER_EXE":"/srv/a""#) == fingerprint(#"\#(go),"APP_NAME":"x""#))
  }

  private static func fingerprint(_ text: String, app: String = "") -> CrashFingerprint {
    CrashFingerprint(type: "appCrash", text: "", frames: CrashStack.frames(of: text), app: app)
  }

  private static func go(_ function: String) -> String {
    "panic: x\n\ngoroutine 1 [running]:\n\(function)()\n\t/src/a.go:5 +0x2\nmain.main()\n\t/src/a.go:9 +0x2\n"
  }

  private static func python(_ folder: String, _ file: String) -> String {
    "Traceback (most recent call last):\n  File \"\(folder)/\(file)\", line 9, in main\nKeyError: 1\n"
  }

  @Test("functions without a scope are those of a program: by its module, or else by the name of its app")
  func programs() {
    for text in [Self.go("main.run"), Self.python("/opt", "app.py"), "at main (/srv/app.js:1:2)\nat /srv/app.js:3:4"] {
      #expect(Self.fingerprint(text, app: "alpha") != Self.fingerprint(text, app: "beta"))
      #expect(Self.fingerprint(text, app: "alpha") == Self.fingerprint(text, app: "alpha"))
    }
    let scope = Self.go("github.com/acme/shop.Pay")
    #expect(Self.fingerprint(scope, app: "alpha") == Self.fingerprint(scope, app: "beta"), "a package of both")
    let module =
      "#0  0x0000555555555252 in pay () from /usr/lib/libjson.so.5\n#1  0x0000555555555252 in main () at a.c:3"
    #expect(Self.fingerprint(module, app: "alpha") == Self.fingerprint(module, app: "beta"), "the library is known")
  }

  @Test("a function of a script is one of its file, in any folder, and under each hash of a bundle")
  func scripts() {
    func python(_ folder: String, _ file: String) -> CrashFingerprint {
      Self.fingerprint(Self.python(folder, file), app: "shop")
    }
    #expect(python("/app", "orders.py") == python("/srv/v2", "orders.py"))
    #expect(python("/app", "orders.py") != python("/app", "carts.py"))
    func node(_ file: String) -> CrashFingerprint {
      Self.fingerprint("TypeError: x\n    at handler (/app/\(file):3:4)\n    at next (/app/route.js:1:1)")
    }
    #expect(
      node("main.3f2a1b9c.js") == node("main.77aa1b9d.js") && node("index-BdF3k2x9.js") == node("index-Qa7e1Zw4.js"))
    #expect(node("orders.js") != node("carts.js") && node("orders2.js") != node("orders1.js"))
  }

  @Test(
    "names that differ from build to build, or from run to run, are one name",
    arguments: [
      ("at acme@1.0/com.acme.A.f(A.java:1)", "at app//acme@1.1/com.acme.A.f(A.java:7)"),
      ("at com.acme.A.f(A.java:1)", "at app//com.acme.A.f(A.java:1)"),
      (
        "at com.acme.Pay$$Lambda$14/0x0000000800c03000.run(Unknown Source)",
        "at com.acme.Pay$$Lambda$15/0x0000000800c04400.run(Unknown Source)"
      ),
      (
        "at com.acme.Pay$$EnhancerBySpringCGLIB$$1ab2c3d4.run(<generated>)",
        "at com.acme.Pay$$EnhancerBySpringCGLIB$$9fb2c3d4.run(<generated>)"
      ),
      ("#0 0x4f in pay(int) /src/till.cc:41:3", "#0 0x6f in pay(int) /src2/till.cc:43:3"),
      (
        "#0 0x4f in pay(int) (/usr/bin/till+0x4f) (BuildId: 0a1b)",
        "#0 0x5f in pay(int) (/opt/till+0x5f) (BuildId: 0a1c)"
      ),
      ("at async /app/a.js:1:2", "at /app/a.js:3:4"),
    ])
  func sameName(one: String, other: String) { #expect(Self.fingerprint(one) == Self.fingerprint(other)) }

  @Test("AddressSanitizer's frames have names, files and lines")
  func sanitizer() {
    let text = "    #0 0x4f in pay(int) /src/till.cc:41:3\n    #1 0x7f in main (/usr/bin/till+0x2)"
    let frames = CrashStack.frames(of: text)
    #expect(frames.map(\.function) == ["pay", "main"] && frames.first?.line == 41)
    #expect(frames.first?.file == "/src/till.cc" && frames.last?.module == "till")
  }

  private static func fingerprint(list: [String]) -> CrashFingerprint {
    CrashFingerprint(type: "appCrash", text: "", frames: list.map { CrashFrame("\($0) ()") })
  }

  @Test(
    "functions that call each other count once; where the stack was full, the one that ran is chance",
    arguments: [
      (["a", "b"], 30, ["b", "a"], 20, true), (["p", "q", "r"], 20, ["r", "p", "q"], 7, true),
      (["a", "b"], 2, ["a", "b"], 9, true), (["a", "b"], 30, ["a", "c"], 30, false),
    ])
  func cycles(one: [String], times: Int, other: [String], otherTimes: Int, isOne: Bool) {
    let stack = { (cycle: [String], times: Int) in Array([[String]](repeating: cycle, count: times).joined()) }
    let (left, right) = (stack(one, times), stack(other, otherTimes))
    #expect((Self.fingerprint(list: left) == Self.fingerprint(list: right)) == isOne)
    let ended = [left, right].map { Self.fingerprint(list: $0 + ["main"]) }
    #expect((ended[0] == ended[1]) == (one == other), "the innermost function of a whole stack is where it crashed")
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
