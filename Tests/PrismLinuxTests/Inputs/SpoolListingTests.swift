import Glibc
import PrismBase
import PrismTestSupport
import Testing

@testable import PrismLinux

@Suite("The files of the crash spool") struct SpoolListingTests {
  @Test(
    "a name is a namespace, a type, which may have dots, and an id",
    arguments: [
      ("shop.appCrash.a-1.json", "shop appCrash a-1 meta"),
      ("shop.app.Crash.v2.a_1.payload", "shop app.Crash.v2 a_1 payload"),
      ("shop.appCrash.json", ""), ("shop.appCrash.a.json.tmp", ""), ("shop.appCrash.a.payload.tmp", ""),
      ("shop.appCrash..json", ""), ("..a.json", ""), ("shop..a.json", ""), ("sh op.appCrash.a.json", ""),
      ("shop.app*.a.json", ""), ("shop.appCrash.ä.json", "shop appCrash _c3_a4 meta"),
      ("shop.appCrash.a+b.json", "shop appCrash a_2bb meta"),
      ("shop.appCrash.a+b.payload", "shop appCrash a_2bb payload"), ("json", ""), ("", ""),
      ("shop.appCrash.a.JSON", ""),
      ("shop.appCrash.a.json.refused", ""),
    ])
  func names(name: String, parts: String) {
    let read = SpoolFileName(name).map { "\($0.namespace) \($0.type) \($0.reportID) \($0.content)" }
    #expect(read ?? "" == parts)
  }

  private static func file(
    _ name: String, _ userID: UInt32 = 1, bytes: Int = 10, at modified: Int64 = 0
  ) -> SpoolListing.File {
    .init(name: name, userID: userID, size: bytes, bytes: bytes, modified: modified)
  }

  @Test("a payload is of the report with its name and its user; the oldest report comes first") func pairs() {
    let listing = SpoolListing([
      Self.file("s.t.b.json", at: 2), Self.file("s.t.b.payload", at: 1), Self.file("s.t.a.json", at: 3),
      Self.file("s.t.a.payload", 2), Self.file("s.t.c.json", 2), Self.file("s.t.d.payload"), Self.file("x.tmp"),
    ])
    #expect(listing.reports[1]?.map(\.meta.name) == ["s.t.b.json", "s.t.a.json"])
    #expect(listing.reports[1]?.map { $0.payload?.name } == ["s.t.b.payload", nil])
    #expect(listing.reports[2]?.map(\.meta.name) == ["s.t.c.json"])
    #expect(listing.others.map(\.name) == ["s.t.a.payload", "s.t.d.payload", "x.tmp"])
  }

  @Test("a payload that the folder did not show with its meta is found by its name") func missedPayload() throws {
    let folder = TemporaryFolder()
    try folder.write("x", to: "s.t.a.payload")
    let descriptor = try Folder.open(folder.path)
    defer { close(descriptor) }
    var listing = SpoolListing([Self.file("s.t.a.json", getuid()), Self.file("s.t.b.json", getuid())])
    listing.findPayloads(in: descriptor)
    #expect(listing.reports[getuid()]?.map { $0.payload?.name } == ["s.t.a.payload", nil])
  }

  @Test("beyond a user's bytes or files the newest are too much; other users lose nothing by it") func quota() {
    let listing = SpoolListing([
      Self.file("s.t.a.json", bytes: 40, at: 1), Self.file("s.t.b.json", bytes: 40, at: 2),
      Self.file("s.t.c.json", bytes: 40, at: 3), Self.file("x.tmp", bytes: 40, at: 4),
      Self.file("s.t.d.json", 2, bytes: 90),
    ])
    func names(_ files: [SpoolListing.File]) -> [String] { files.map(\.name) }
    #expect(names(listing.excess(bytesMax: 100, filesMax: 10)) == ["x.tmp", "s.t.c.json"])
    #expect(names(listing.excess(bytesMax: 1000, filesMax: 3)) == ["x.tmp"])
    #expect(names(listing.excess(bytesMax: 1000, filesMax: 10)).isEmpty)
    #expect(names(listing.excess(bytesMax: 80, filesMax: 10, but: [1])) == ["s.t.d.json"])
  }

  @Test("a look deletes a bounded number of names that are no files', and the next one goes on") func removals() throws
  {
    let folder = TemporaryFolder()
    for number in 0..<250 { mkdir(folder("\(number)"), 0o700) }
    try folder.write("{}", to: "s.t.a.json")
    let descriptor = try Folder.open(folder.path)
    defer { close(descriptor) }
    for (removed, isMore) in [(100, true), (100, true), (50, false), (0, false)] {
      let listing = try SpoolListing(folder: descriptor, at: folder.path, removalsMax: 100)
      #expect(listing.removed.count == removed && listing.mustLookAgain == isMore)
      #expect(listing.reports[getuid()]?.count == 1 && !listing.isCut && listing.kept == nil)
    }
  }

  @Test("names of one user push no other user's out, and the user with the most keeps the oldest") func shares() {
    var shares = SpoolShares(namesMax: 100)
    for number in 0..<1000 {
      shares.add(Self.file("s.t.\(number).json", 1, at: Int64(number)))
      if number % 100 == 0 { shares.add(Self.file("s.t.v\(number).json", 2)) }
    }
    #expect(shares.isCut && shares.files.values.reduce(0) { $0 + $1.count } <= 100)
    #expect(shares.files[2]?.count == 10)
    #expect(shares.files[1]?.first?.name == "s.t.0.json" && shares.files[1]?.count ?? 0 >= 45)
    var users = SpoolShares(namesMax: 100)
    for user in 0..<1000 { users.add(Self.file("s.t.\(user).json", UInt32(user))) }
    #expect(users.files.count <= 100 && users.isCut, "as many users as there are names")
  }

  @Test("what was not finished is deleted after an hour, a refused report after a week; the times of files say nothing")
  func ages() {
    let hour = Duration.seconds(3600)
    func listing(_ modified: Int64) -> SpoolListing {
      SpoolListing([
        Self.file("a.tmp"), Self.file("b.tmp", at: modified), Self.file("s.t.a.json.refused"), Self.file("s.t.a.json"),
      ])
    }
    var known = listing(1).leftovers([:], uptime: hour)
    #expect(SpoolListing.expired(known, uptime: hour * 2).isEmpty)
    known = listing(.max).leftovers(known, uptime: hour * 2)  // b.tmp is written on
    #expect(SpoolListing.expired(known, uptime: hour * 2 + .seconds(1)) == ["a.tmp"])
    known = listing(.max).leftovers(known, uptime: hour * 169)
    #expect(SpoolListing.expired(known, uptime: hour * 169 + .seconds(1)) == ["a.tmp", "b.tmp", "s.t.a.json.refused"])
    #expect(SpoolListing([]).leftovers(known, uptime: hour).isEmpty)
  }
}
