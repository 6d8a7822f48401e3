import PrismBase
import PrismHTTP
import PrismTestSupport
import Testing

@testable import PrismCollector

@Suite("Sessions that were signed out")
struct EndedSessionTests {
  @Test("a session that was signed out reads nothing, with any copy of its cookie; another one goes on")
  func signedOut() async throws {
    let rig = try PageRig()
    let (session, other) = (
      try await rig.signIn("viewer-token-of-tests"), try await rig.signIn("viewer-token-of-tests")
    )
    let read = { (cookie: String) in
      await rig.answer(PageRig.request("/api/v1/fleet", headers: [("cookie", cookie)])).status
    }
    #expect(await read(session.cookie) == 200)
    let end = PageRig.request(
      "/api/v1/session/end", method: .post,
      headers: [("cookie", session.cookie), ("x-prism-change", session.change)])
    #expect(await rig.answer(end).status == 200)
    #expect(await read(session.cookie) == 401)
    #expect(await read(other.cookie) == 200)
  }

  @Test(
    "another replica knows it within 2 s, and no clock lets it begin again",
    arguments: StoreRig.Fleet.allCases)
  func replicas(kind: StoreRig.Fleet) async throws {
    let rig = try PageRig()
    var sessions: [ReaderSession] = []
    for _ in 0..<2 {
      let pair = try await rig.signIn("viewer-token-of-tests").cookie
      sessions.append(try #require(ReaderSession(PageRig.request("/", headers: [("cookie", pair)]), isSecure: false)))
    }
    let (database, time) = (try await rig.rig.fleet(kind), rig.rig.time)
    let (one, other) = (EndedSessions(database, time: time), EndedSessions(database, time: time))
    #expect(try await one.contains(sessions[0]) == false)
    #expect(try await other.contains(sessions[0]) == false)
    for _ in 0..<2 { try await one.end(sessions[0]) }
    #expect(try await one.contains(sessions[0]))
    time.advance(by: .seconds(2))
    #expect(try await other.contains(sessions[0]))
    #expect(try await other.contains(sessions[1]) == false)
    time.stepWallClock(milliseconds: (ReaderSession.lifetimeSeconds + 1) * 1000)
    try await one.end(sessions[1])
    time.advance(by: .seconds(2))
    #expect(try await other.contains(sessions[0]), "the clock may go back")
  }

  @Test("while nothing is known, no session is believed") func unknown() async throws {
    let rig = try PageRig()
    let pair = try await rig.signIn("viewer-token-of-tests").cookie
    let session = try #require(ReaderSession(PageRig.request("/", headers: [("cookie", pair)]), isSecure: false))
    let unknown = EndedSessions(.folder(rig.rig.path + "/missing"), time: rig.rig.time)
    await #expect(throws: CollectorRefusal.unreadable) { try await unknown.contains(session) }
    await #expect(throws: CollectorRefusal.unreadable) { try await unknown.end(session) }
  }
}
