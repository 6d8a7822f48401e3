import PrismAdmission
import PrismConfig
import Testing

@Suite("Which systemd unit a process belongs to")
struct ControlGroupTests {
  @Test(
    "the unit is that of the system's manager, with any groups below it",
    arguments: [
      // Version 2
      ("0::/system.slice/shop-pos.service\n", "shop-pos.service"),
      ("0::/system.slice/system-shop.slice/shop@1.service/worker/3\n", "shop@1.service"),
      ("0::/system.slice/shop\\x2dpos.service\n", "shop\\x2dpos.service"),
      ("0::/_cpu.service\n", "cpu.service"),
      ("0::/init.scope\n", "init.scope"),
      ("0::/user.slice/user-1000.slice/session-2.scope\n", "session-2.scope"),
      // Version 1 and both at once: systemd's own hierarchy counts
      ("12:pids:/x.service\n1:name=systemd:/system.slice/shop.service\n0::/other.service\n", "shop.service"),
      ("2:cpu,cpuacct:/\n1:name=systemd:/system.slice/a:b.service\n", "a:b.service"),
      // A name that a user gives is no unit of the system's
      ("0::/user.slice/user-1000.slice/user@1000.service/app.slice/shop-pos.service\n", "user@1000.service"),
      ("0::/docker/4711/system.slice/shop-pos.service\n", nil),
      ("0::/../system.slice/shop-pos.service\n", nil),
      ("4:name=shop:/system.slice/shop-pos.service\n", nil),
      // No unit
      ("0::/\n", nil), ("0::/system.slice\n", nil), ("0::/system.slice/.service\n", nil), ("", nil), ("0:/\n", nil),
      ("0::/shop pos.service\n", nil), ("0::/\(String(repeating: "a", count: 257)).service\n", nil),
      // A hierarchy that systemd does not use names no unit: only root makes groups outside of slices in the other.
      ("9:name=systemd:/\n0::/system.slice/shop.service\n", "shop.service"),
    ])
  func unit(text: String, unit: String?) { #expect(ControlGroup.unit(text) == unit) }

  @Test(
    "a pattern matches as a shell's would, in bounded time",
    arguments: [
      ("shop-*.service", "shop-pos.service", true), ("shop-*.service", "shop-.service", true),
      ("shop-*.service", "shop.service", false), ("shop-*.service", "myshop-a.service", false),
      ("shop-*.service", "shop-a.service.scope", false), ("shop-?.service", "shop-a.service", true),
      ("shop-?.service", "shop-ab.service", false), ("*", "anything.scope", true), ("a*b*c", "aXbYbZc", true),
      ("a*b*c", "aXbYbZ", false), ("shop.service", "shop.service", true), ("shop.service", "shopXservice", false),
      (String(repeating: "a*", count: 128), String(repeating: "a", count: 255) + "b", true),
      (String(repeating: "a*", count: 127) + "c", String(repeating: "a", count: 256), false),
    ])
  func patterns(pattern: String, unit: String, matches: Bool) throws {
    #expect(try #require(UnitPattern(pattern)).matches(unit) == matches)
  }

  @Test("what no unit's name has is no pattern", arguments: ["", "shop/a", "a b", "a\n", "é", "[ab]"])
  func noPatterns(text: String) { #expect(UnitPattern(text) == nil) }
}
