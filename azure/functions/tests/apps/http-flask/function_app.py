"""A Flask app behind one function."""

import azure.functions as func
from flask import Flask, Response, jsonify, request

site = Flask(__name__)


@site.get("/items/<int:item>")
def read_item(item):
    return jsonify(id=item, query=request.args.to_dict(), test=request.headers.get("X-Test"))


@site.post("/echo")
def echo():
    return Response(request.get_data()[::-1], status=201, mimetype="application/octet-stream")


@site.post("/form")
def form():
    response = jsonify(request.form.to_dict())
    response.set_cookie("seen", "yes")
    return response


app = func.WsgiFunctionApp(app=site.wsgi_app, http_auth_level=func.AuthLevel.ANONYMOUS)
