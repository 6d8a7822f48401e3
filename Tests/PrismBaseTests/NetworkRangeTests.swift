import PrismBase
import Testing

@Suite("Networks")
struct NetworkRangeTests {
  @Test(
    "a range holds the addresses that begin as it does",
    arguments: [
      ("192.0.2.1", "192.0.2.1", true), ("192.0.2.1", "192.0.2.2", false), ("10.0.0.0/8", "10.255.0.1", true),
      ("10.0.0.0/8", "11.0.0.1", false), ("10.32.0.0/11", "10.63.255.255", true), ("10.32.0.0/11", "10.64.0.0", false),
      ("0.0.0.0/0", "203.0.113.9", true), ("0.0.0.0/0", "2001:db8::1", false),
      ("2001:db8::/32", "2001:db8:ff::1", true),
      ("2001:db8::/32", "2001:db9::1", false), ("::/0", "2001:db8::1", true), ("192.0.2.1", "::ffff:192.0.2.1", true),
      ("192.0.2.0/24", "192.0.2", false), ("192.0.2.0/24", "", false),
    ])
  func contains(range: String, address: String, isWithin: Bool) throws {
    #expect(try #require(NetworkRange(range)).contains(address) == isWithin)
  }

  @Test(
    "a text that is no network is refused, also one with bits that its length leaves out",
    arguments: [
      "", "proxy", "10.0.0.0/33", "10.0.0.1/8", "10.0.0.0/", "10.0.0.0/-1", "10.0.0.0/+8", "10.0.0.0/8/8", "::/129",
      "2001:db8::1/64", "[::1]", "10.0.0.0/08x",
    ])
  func refuses(text: String) { #expect(NetworkRange(text) == nil) }

  @Test(
    "an address without its host's own bits is one sender",
    arguments: [
      ("192.0.2.1", "192.0.2.1"), ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
      ("2001:db8:1:2::1", "2001:db8:1:2::/64"), ("::ffff:192.0.2.1", "::ffff:192.0.2.1"), ("", ""),
    ])
  func sender(address: String, network: String) { #expect(NetworkRange.ofOneSender(address) == network) }
}
