"""Makes web-tokens.json: a JSON Web Key Set, and tokens with the status that each must get. Needs cryptography of PyPI."""
import json,base64
from cryptography.hazmat.primitives import serialization,hashes
from cryptography.hazmat.primitives.asymmetric import ec,rsa,padding
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
b=lambda x: base64.urlsafe_b64encode(x).rstrip(b'=').decode()
i=lambda n,l=None: b(n.to_bytes(l or (n.bit_length()+7)//8,'big'))
T=1700000000
k=ec.generate_private_key(ec.SECP256R1()); r=rsa.generate_private_key(65537,2048); r1=rsa.generate_private_key(65537,1024)
p=k.public_key().public_numbers(); q=r.public_key().public_numbers(); q1=r1.public_key().public_numbers()
keys={"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"},{"kty":"RSA","kid":"small","n":i(q1.n),"e":i(q1.e)},{"kty":"RSA","kid":"r","use":"sig","alg":"RS256","n":i(q.n),"e":i(q.e)},{"kty":"EC","crv":"P-256","kid":"e","x":i(p.x,32),"y":i(p.y,32)}]}
def tok(head,claims,key=None,sign=None):
    t=b(json.dumps(head,separators=(',',':')).encode())+'.'+b(json.dumps(claims,separators=(',',':')).encode())
    if sign is not None: s=sign(t.encode())
    elif isinstance(key,ec.EllipticCurvePrivateKey):
        a,c=decode_dss_signature(key.sign(t.encode(),ec.ECDSA(hashes.SHA256()))); s=a.to_bytes(32,'big')+c.to_bytes(32,'big')
    else: s=key.sign(t.encode(),padding.PKCS1v15(),hashes.SHA256())
    return t+'.'+b(s)
import hmac,hashlib
C={"iss":"https://id.example","aud":"prism","email":"ann@example.org","sub":"1","exp":T+3600}
w=lambda **kw:{**C,**kw}
def wo(x): d=dict(C); d.pop(x); return d
R={"alg":"RS256","kid":"r"}; E={"alg":"ES256","kid":"e"}
pub=r.public_key().public_bytes(serialization.Encoding.PEM,serialization.PublicFormat.SubjectPublicKeyInfo)
V=[]
good=tok(R,C,r); eg=tok(E,C,k)
def a(name,status,t): V.append((name,status,t))
a("RS256",200,good); a("ES256",200,eg); a("without a key id",200,tok({"alg":"ES256"},C,k))
a("an audience among others",200,tok(E,w(aud=["x","prism"]),k))
a("expired within the leeway",200,tok(E,w(exp=T-30),k))
a("expired",401,tok(E,w(exp=T-61),k)); a("without an end",401,tok(E,wo("exp"),k)); a("an end that is text",401,tok(E,w(exp=str(T+9)),k))
a("of later",401,tok(E,w(nbf=T+120),k))
a("another audience",401,tok(E,w(aud="other"),k)); a("no audience",401,tok(E,wo("aud"),k)); a("an audience that begins alike",401,tok(E,w(aud=["prism2"]),k))
a("another issuer",401,tok(E,w(iss="https://evil.example"),k)); a("no issuer",401,tok(E,wo("iss"),k))
a("no name",401,tok(E,wo("email"),k)); a("a name that is a number",401,tok(E,w(email=5),k))
a("a reader that is in no file",403,tok(E,w(email="eve@example.org"),k)); a("a name that begins alike",403,tok(E,w(email="ann@example.org2"),k))
a("alg none",401,tok({"alg":"none"},C,sign=lambda t:b"")); a("HS256 under the public key",401,tok({"alg":"HS256","kid":"r"},C,sign=lambda t:hmac.new(pub,t,hashlib.sha256).digest()))
a("another key of the same id",401,tok(E,C,ec.generate_private_key(ec.SECP256R1()))); a("the id of another key",401,tok({"alg":"ES256","kid":"r"},C,k))
a("a key that is too small",401,tok({"alg":"RS256","kid":"small"},C,r1)); a("RS256 by a point",401,tok({"alg":"RS256","kid":"e"},C,k))
a("an extension that must be known",401,tok({**E,"crit":["b64"],"b64":False},C,k))
x=eg.split('.'); c=b(json.dumps(w(email="root@example.org")).encode())
a("other claims under the signature",401,f"{x[0]}.{c}.{x[2]}"); a("a signature of zeros",401,f"{x[0]}.{x[1]}.{b(bytes(64))}"); a("a signature that was cut",401,f"{x[0]}.{x[1]}.{x[2][:-4]}")
a("a signature with padding",401,eg+"==") ; a("no signature",401,f"{x[0]}.{x[1]}."); a("two parts",401,f"{x[0]}.{x[1]}"); a("four parts",401,eg+".AAAA"); a("empty",401,""); a("no token",401,"ann@example.org")
json.dump({"keys":keys,"tokens":[{"name":n,"status":s,"token":t} for n,s,t in V]},open("web-tokens.json", "w"),indent=1)
print(len(V))
